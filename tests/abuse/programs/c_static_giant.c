static char giant[1UL << 42];
int main(int count, char **words) { giant[(unsigned long)count << 40] = 1; return giant[5] + words[0][0]; }
