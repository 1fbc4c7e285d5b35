/* A pipe as wide as allowed and several writers without copies: a reader that reads until it is empty never comes back. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    size_t size = 1 << 20;
    fcntl(1, F_SETPIPE_SZ, size);
    char *page = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < size; at++) page[at] = 'x';
    for (int i = 0; i < 3; i++) fork();
    time_t until = time(0) + 60;
    struct iovec part = {page, size};
    while (time(0) < until)
        if (vmsplice(1, &part, 1, 0) < 0 && write(1, page, size) < 0) return 1;
    return 0;
}
