"""The same over HTTP from Python, without a package of Assay's.

    assay up --http-port 8080       # in a checkout
    python examples/http_requests.py

Run in the tests as it stands, against a real server.
"""

from __future__ import annotations

import json
import os
from urllib.request import Request, urlopen

URL = os.environ.get("ASSAY_URL", "http://127.0.0.1:8080")

item = {"task": "math", "response": r"so it is \boxed{42}"}
asked = {"items": [{**item, "reference": "42"}, {**item, "reference": " "}]}
headers = {"Content-Type": "application/json"}
with urlopen(Request(f"{URL}/v1/score", json.dumps(asked).encode(), headers)) as answer:  # noqa: S310  # http
    results = json.load(answer)["results"]
for result in results:
    judgement = result.get("judgement")  # absent where there is a fault: never take that for a 0
    print(judgement["reward"] if judgement else f"no judgement: {result['fault']['message']}")
