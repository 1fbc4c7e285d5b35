# opens its parent's memory before it changes its user, and keeps the descriptor
# copies: refused
PARENT = os.getpid()
before("setresuid", lambda: KEPT.append(os.open(f"/proc/{PARENT}/mem", os.O_RDWR)))
