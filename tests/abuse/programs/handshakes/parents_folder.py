# keeps a descriptor of its parent's folder
# copies: refused
before("become", lambda: KEPT.append(os.open(".", os.O_PATH)))
