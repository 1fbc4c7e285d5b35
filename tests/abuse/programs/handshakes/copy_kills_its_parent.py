# its copy kills its parent before it changes its user
# copies: refused made
import signal
PARENT = os.getpid()
def kill():
    for number in (9, 15, 11, 19):
        try:
            os.kill(PARENT, number)
        except OSError:
            pass
before("become", kill)
