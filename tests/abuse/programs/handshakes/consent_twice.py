# takes consent twice
# copies: refused made
def twice(*users):
    REAL["setresuid"](*users)
    for user in (users[0], users[0] + 1, users[0] - 1, 0):
        try:
            REAL["setresuid"](user, user, user)
            print("ESCAPED took another user", user)
        except OSError:
            pass
    for flags in (0x20000, 0x40000000, 0x10000000):
        try:
            REAL["unshare"](flags)
            if flags != 0x20000:
                print("ESCAPED unshared", hex(flags))
        except OSError:
            pass
os.setresuid = twice
