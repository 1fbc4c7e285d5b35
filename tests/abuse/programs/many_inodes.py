import os

made = 0
try:
    for folder in range(2_000):
        os.mkdir(f"d{folder}")
        for number in range(500):
            os.close(os.open(f"d{folder}/f{number}", os.O_CREAT | os.O_WRONLY))
            made += 1
    print("ESCAPED a million inodes")
except OSError as error:
    print(made, error)
