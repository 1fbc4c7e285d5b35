import sys

print("wall-time-limit")
sys.exit(124)
