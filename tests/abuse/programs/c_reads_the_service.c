#include "/proc/self/environ"
#include "/proc/1/environ"
#include "/proc/self/cmdline"
int main(void) { return 0; }
