# kill(-1, SIGKILL), by itself and by a child
# ends: completed died
# control-by: victim
if os.fork() == 0:
    attempt("all", lambda: os.kill(-1, signal.SIGKILL))
    os._exit(0)
time.sleep(0.2)
attempt("all", lambda: os.kill(-1, signal.SIGKILL))
attempt("all", lambda: os.kill(0, signal.SIGKILL))
print("TRIED")
