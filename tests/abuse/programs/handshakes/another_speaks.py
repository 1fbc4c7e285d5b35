# a helper speaks first on its line
# copies: refused
def speak(self, user, given, *rest):
    if REAL["fork"]() == 0:
        socket(fileno=os.dup(given[0])).send(b"C")
        time.sleep(3)
        os._exit(0)
    time.sleep(0.1)
    return REAL["become"](self, user, given, *rest)
SERVE._become = speak
