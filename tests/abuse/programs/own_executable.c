/* The file it runs from may be shared with later runs: nothing may change it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
    char path[64], real[256] = {0};
    if (readlink("/proc/self/exe", real, sizeof real - 1) < 0 || strstr(real, "/box/")) return 7; /* its own copy */
    for (int number = -1; number < 64; number++) {
        if (number < 0) snprintf(path, sizeof path, "/proc/self/exe");
        else snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        if (number >= 0 && number < 3) continue;
        if (number >= 3 && write(number, "", 0) == 0) printf("ESCAPED writable descriptor %d\n", number);
        int file = open(path, O_RDWR);
        if (file >= 0) {
            printf("ESCAPED opened %s\n", path);
            if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED) puts("ESCAPED mapped it");
        }
        if (chmod(path, 0777) == 0) printf("ESCAPED changed the mode of %s\n", path);
        if (truncate(path, 0) == 0) printf("ESCAPED emptied %s\n", path);
    }
    return 7;
}
