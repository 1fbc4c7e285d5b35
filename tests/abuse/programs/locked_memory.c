#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    mlockall(MCL_CURRENT | MCL_FUTURE);
    for (int i = 0; i < 4096; i++) {
        char *block = malloc(8 << 20);
        if (!block) { puts("no more"); return 1; }
        memset(block, i, 8 << 20);
    }
    puts("held 32 GiB");
    return 0;
}
