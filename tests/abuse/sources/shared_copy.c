/* A copy of a session that keeps to every word of the handshake and shares its original's memory.

Position independent, without a library: it runs from anonymous memory. `begin` clones as `flags`
say and returns in the original; the copy counts up `word` for ever.
*/
typedef long L;

struct shared {
    L word, user, flags;
    int count, given[8];
    char folder[256], nothing[16], answer[16], words[4];
    struct { unsigned version; int process; } header;
    unsigned sets[6];
    L pause[2];
    L stack[4096];
};

static inline __attribute__((always_inline)) L call(L number, L a, L b, L c) {
    L result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static inline __attribute__((always_inline)) void set_capabilities(struct shared *s, unsigned effective) {
    s->header.version = 0x20080522;
    s->header.process = 0;
    s->sets[0] = effective;
    s->sets[1] = (1 << 7) | (1 << 21);
    s->sets[2] = s->sets[3] = s->sets[4] = s->sets[5] = 0;
    call(126, (L)&s->header, (L)s->sets, 0);
}

static inline __attribute__((always_inline)) void say(struct shared *s, int line, char word) {
    s->words[0] = word;
    call(1, line, (L)s->words, 1);
}

__attribute__((noreturn)) static void copy(struct shared *s) {
    int i, line = s->given[0];
    say(s, line, 'C');
    set_capabilities(s, (1 << 7) | (1 << 21));
    call(272, 0x40020000, 0, 0);              /* unshare: mounts, network */
    call(117, s->user, s->user, s->user);     /* setresuid */
    set_capabilities(s, 0);
    call(157, 4, 1, 0);                       /* dumpable */
    say(s, line, 'U');
    if (call(0, line, (L)s->answer, 16) != 1) call(60, 1, 0, 0);
    call(80, (L)s->folder, 0, 0);
    call(292, line, 1001, 02000000);
    call(3, 1000, 0, 0);
    i = call(2, (L)s->nothing, 1, 0);
    call(33, i, 1, 0);
    call(33, i, 2, 0);
    call(3, i, 0, 0);
    for (i = 0; i < s->count; i++) call(3, s->given[i], 0, 0);
    say(s, 1001, 'D');
    if (call(0, 1001, (L)s->answer, 16) != 1) call(60, 1, 0, 0);
    s->pause[0] = 0;
    s->pause[1] = 1000000;
    for (;;) {
        s->word++;
        call(35, (L)s->pause, 0, 0);
    }
}

L begin(struct shared *s) {
    L result, *top = &s->stack[4090];
    register L tls __asm__("r8") = 0;
    register L child __asm__("r10") = 0;
    register struct shared *kept __asm__("r12") = s;
    __asm__ volatile("syscall"
        : "=a"(result)
        : "a"(56), "D"(s->flags | 0x8000 | 17), "S"(top), "d"(0), "r"(child), "r"(tls), "r"(kept)
        : "rcx", "r11", "memory");
    if (result == 0) {
        register struct shared *own __asm__("r12");
        __asm__ volatile("" : "=r"(own));
        copy(own);
    }
    return result;
}
