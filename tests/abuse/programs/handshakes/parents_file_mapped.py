# maps a file of its parent
# copies: refused
import mmap
def map_it():
    with open("mapped", "w+b") as file:
        file.truncate(4096)
        KEPT.append(mmap.mmap(file.fileno(), 4096))
before("become", map_it)
