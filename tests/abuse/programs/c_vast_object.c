__asm__(".data\n.globl vast\nvast: .fill 0x200000000, 1, 0x41\n");
int main(void) { return 0; }
