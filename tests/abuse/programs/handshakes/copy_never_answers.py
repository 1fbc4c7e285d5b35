# its copy stops in the middle
# copies: refused
# slow: yes
before("dumpable", lambda: time.sleep(100))
