# takes its time
# copies: made refused
# slow: yes
before("dumpable", lambda: time.sleep(3))
