"""A resources server for NeMo Gym (0.4): save it as `resources_servers/assay/app.py`.

`nemo_gym.yaml` beside this is its configuration.

Run in `make test-adapters`: the class of this file in NeMo Gym's own web app, with that
configuration, against a real server. `make test` has no NeMo Gym, and only reads the file. Not run:
`gym run` with a model, and NeMo RL.
"""

from assay.clients.trainers.nemo_gym import AssayResourcesServer

if __name__ == "__main__":
    AssayResourcesServer.run_webserver()
