#include <stdio.h>
static volatile int deep;
static int down(int n) { volatile char room[65536]; room[0] = (char)n; deep = n; return down(n + 1) + room[0]; }
int main(void) { printf("%d\n", down(0)); return 0; }
