# closes its line to the keeper
# copies: refused
os.close(LINE)
