// A layer under all input and output of a program on Linux: counts the calls that touch a folder, and lets one of them fail,
// fall short, wait, or find the world changed.
//
// Preloaded libraries see only what goes through the C library, and Rust's rustix does not. So the kernel is asked to turn every
// call of interest into a signal (seccomp), and its handler makes the call, or does not. One place of code may make calls
// that are not turned: `layer_call`.
//
//   TERRANE_FAULTS_FOLDER   only calls on paths below it count
//   TERRANE_FAULTS_LOG      a line for each of them: number, name, "!" if it was tampered with or else "-", what could be done
//                           to it, path
//   TERRANE_FAULTS_PLAN     "NUMBER KIND ARGUMENT": what happens at which call; absent: calls are only counted
//
// Kinds: eio, enospc, eintr and emfile fail the call where it may fail so; short halves what is read or written; delay waits;
// kill ends the program. With an argument: full BYTES is a disk with so many bytes left, from the first call on; truncate PATH,
// replace PATH (by PATH.new) and rewrite PATH (by the bytes of PATH.new, in place and with the old time) change a file just
// before the call.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

long layer_call(long number, long a, long b, long c, long d, long e, long f);
extern char layer_call_end[];

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
__asm__(".text\n.globl layer_call\n.type layer_call,@function\nlayer_call:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\nmov 8(%rsp), %r9\n"
        "syscall\n.globl layer_call_end\nlayer_call_end:\nret\n");
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
__asm__(".text\n.globl layer_call\n.type layer_call,%function\nlayer_call:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc 0\n.globl layer_call_end\nlayer_call_end:\nret\n");
#else
#error "the layer knows x86-64 and 64-bit ARM"
#endif

#define CALL(number, ...) CALL_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...) \
    layer_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// How a call may fail, besides as every call may.
enum { SPACE = 1, INTERRUPTED = 2, DESCRIPTOR = 4, WRITES = 8, OPENS = 16 };
enum { NONE = -1 };

enum kind { EIO_KIND, ENOSPC_KIND, EINTR_KIND, EMFILE_KIND, SHORT, DELAY, KILL, FULL, TRUNCATE, REPLACE, REWRITE, KINDS };
static const char *const kinds[KINDS] = {"eio",  "enospc", "eintr",    "emfile",  "short",  "delay",
                                         "kill", "full",   "truncate", "replace", "rewrite"};

struct call {
    long number;
    const char *name;
    int folder;  // argument that is a folder's descriptor before the path
    int path;    // argument that is a path
    int file;    // argument that is a descriptor
    int length;  // argument that says how many bytes
    int faults;
};

static const struct call calls[] = {
#ifdef SYS_open
    {SYS_open, "open", NONE, 0, NONE, NONE, INTERRUPTED | DESCRIPTOR | OPENS},
    {SYS_creat, "creat", NONE, 0, NONE, NONE, SPACE | INTERRUPTED | DESCRIPTOR},
    {SYS_stat, "stat", NONE, 0, NONE, NONE, 0},
    {SYS_lstat, "lstat", NONE, 0, NONE, NONE, 0},
    {SYS_access, "access", NONE, 0, NONE, NONE, 0},
    {SYS_rename, "rename", NONE, 0, NONE, NONE, SPACE},
    {SYS_link, "link", NONE, 0, NONE, NONE, SPACE},
    {SYS_symlink, "symlink", NONE, 1, NONE, NONE, SPACE},
    {SYS_unlink, "unlink", NONE, 0, NONE, NONE, 0},
    {SYS_rmdir, "rmdir", NONE, 0, NONE, NONE, 0},
    {SYS_mkdir, "mkdir", NONE, 0, NONE, NONE, SPACE},
    {SYS_chmod, "chmod", NONE, 0, NONE, NONE, 0},
    {SYS_chown, "chown", NONE, 0, NONE, NONE, 0},
    {SYS_readlink, "readlink", NONE, 0, NONE, NONE, 0},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "renameat", 0, 1, NONE, NONE, SPACE},
#endif
#ifdef SYS_newfstatat
    {SYS_newfstatat, "newfstatat", 0, 1, NONE, NONE, 0},
#endif
    {SYS_openat, "openat", 0, 1, NONE, NONE, INTERRUPTED | DESCRIPTOR | OPENS},
    {SYS_fstat, "fstat", NONE, NONE, 0, NONE, 0},
    {SYS_statx, "statx", 0, 1, NONE, NONE, 0},
    {SYS_faccessat, "faccessat", 0, 1, NONE, NONE, 0},
    {SYS_renameat2, "renameat2", 0, 1, NONE, NONE, SPACE},
    {SYS_linkat, "linkat", 0, 1, NONE, NONE, SPACE},
    {SYS_symlinkat, "symlinkat", 1, 2, NONE, NONE, SPACE},
    {SYS_unlinkat, "unlinkat", 0, 1, NONE, NONE, 0},
    {SYS_mkdirat, "mkdirat", 0, 1, NONE, NONE, SPACE},
    {SYS_fchmod, "fchmod", NONE, NONE, 0, NONE, 0},
    {SYS_fchmodat, "fchmodat", 0, 1, NONE, NONE, 0},
    {SYS_fchown, "fchown", NONE, NONE, 0, NONE, 0},
    {SYS_fchownat, "fchownat", 0, 1, NONE, NONE, 0},
    {SYS_utimensat, "utimensat", 0, 1, NONE, NONE, 0},
    {SYS_readlinkat, "readlinkat", 0, 1, NONE, NONE, 0},
    {SYS_truncate, "truncate", NONE, 0, NONE, NONE, SPACE},
    {SYS_read, "read", NONE, NONE, 0, 2, INTERRUPTED},
    {SYS_pread64, "pread", NONE, NONE, 0, 2, INTERRUPTED},
    {SYS_readv, "readv", NONE, NONE, 0, NONE, INTERRUPTED},
    {SYS_preadv, "preadv", NONE, NONE, 0, NONE, INTERRUPTED},
    {SYS_write, "write", NONE, NONE, 0, 2, SPACE | INTERRUPTED | WRITES},
    {SYS_pwrite64, "pwrite", NONE, NONE, 0, 2, SPACE | INTERRUPTED | WRITES},
    {SYS_writev, "writev", NONE, NONE, 0, NONE, SPACE | INTERRUPTED | WRITES},
    {SYS_pwritev, "pwritev", NONE, NONE, 0, NONE, SPACE | INTERRUPTED | WRITES},
    {SYS_copy_file_range, "copy_file_range", NONE, NONE, 2, 4, SPACE | WRITES},
    {SYS_sendfile, "sendfile", NONE, NONE, 0, 3, SPACE | WRITES},
    {SYS_lseek, "lseek", NONE, NONE, 0, NONE, 0},
    {SYS_fsync, "fsync", NONE, NONE, 0, NONE, SPACE | INTERRUPTED},
    {SYS_fdatasync, "fdatasync", NONE, NONE, 0, NONE, SPACE | INTERRUPTED},
    {SYS_ftruncate, "ftruncate", NONE, NONE, 0, NONE, SPACE | INTERRUPTED},
    {SYS_fallocate, "fallocate", NONE, NONE, 0, NONE, SPACE | INTERRUPTED},
    {SYS_flock, "flock", NONE, NONE, 0, NONE, 0},
    {SYS_fcntl, "fcntl", NONE, NONE, 0, NONE, 0},
    {SYS_ioctl, "ioctl", NONE, NONE, 0, NONE, 0},
    {SYS_getdents64, "getdents", NONE, NONE, 0, NONE, 0},
    {SYS_mmap, "mmap", NONE, NONE, 4, NONE, 0},
    {SYS_close, "close", NONE, NONE, 0, NONE, 0},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static char folder[4096];
static size_t folder_length;
static int log_file = -1;
static long plan_number;
static int plan_kind = KINDS;
static char plan_argument[4096];
static long counted;
static long bytes_left;

// The path that a call is about; empty where there is none.
static void path_of(const struct call *call, const long *arguments, char *path, size_t size) {
    char link[64];
    const char *given = call->path == NONE ? "" : (const char *)arguments[call->path];
    int file = call->file != NONE ? (int)arguments[call->file] : call->folder != NONE ? (int)arguments[call->folder] : AT_FDCWD;
    size_t length = 0;
    path[0] = 0;
    if (given == NULL) given = "";
    if (given[0] != '/') {
        // The path of a descriptor, or of the folder that the path starts from.
        if (file == AT_FDCWD) strcpy(link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        long found = CALL(SYS_readlinkat, AT_FDCWD, link, path, size - 2);
        if (found < 0) return;
        length = (size_t)found;
        if (given[0] != 0) path[length++] = '/';
    }
    size_t rest = strlen(given);
    if (length + rest >= size) rest = size - length - 1;
    memcpy(path + length, given, rest);
    path[length + rest] = 0;
}

static int is_inside(const char *path) {
    return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

// Changes a file as another program would.
static void change(void) {
    char other[4200];
    snprintf(other, sizeof other, "%s.new", plan_argument);
    if (plan_kind == REPLACE) {
        CALL(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, plan_argument, 0);
        return;
    }
    struct stat before;
    if (CALL(SYS_newfstatat, AT_FDCWD, plan_argument, &before, 0) < 0) return;
    long file = CALL(SYS_openat, AT_FDCWD, plan_argument, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return;
    if (plan_kind == TRUNCATE) {
        CALL(SYS_ftruncate, file, before.st_size / 2);
    } else {
        // All of it by the bytes of the other, and nobody shall see the time of it.
        static char part[65536];
        long from = CALL(SYS_openat, AT_FDCWD, other, O_RDONLY | O_CLOEXEC, 0);
        long count;
        while ((count = CALL(SYS_read, from, part, sizeof part)) > 0) CALL(SYS_write, file, part, count);
        CALL(SYS_close, from);
        struct timespec times[2] = {before.st_atim, before.st_mtim};
        CALL(SYS_utimensat, file, NULL, times, 0);
    }
    CALL(SYS_close, file);
}

// What can be done to a call: a bit for each kind.
static int possible(const struct call *call, const long *arguments) {
    int faults = call->faults;
    int bits = 1 << EIO_KIND | 1 << DELAY | 1 << KILL | 1 << TRUNCATE | 1 << REPLACE | 1 << REWRITE;
    if (faults & OPENS && arguments[call->path + 1] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) faults |= SPACE;
    if (call->number == SYS_fcntl && arguments[1] == F_DUPFD_CLOEXEC) faults |= DESCRIPTOR;
    if (faults & SPACE) bits |= 1 << ENOSPC_KIND;
    if (faults & INTERRUPTED) bits |= 1 << EINTR_KIND;
    if (faults & DESCRIPTOR) bits |= 1 << EMFILE_KIND;
    if (call->length != NONE && arguments[call->length] > 1) bits |= 1 << SHORT;
    // Only what was written can be lost when it is closed; a folder never is.
    struct stat found;
    if (call->number == SYS_close && CALL(SYS_fstat, arguments[0], &found) == 0 && S_ISDIR(found.st_mode)) bits &= ~(1 << EIO_KIND);
    return bits;
}

// Makes a call, or does not; `is_touched` says whether it was tampered with.
static long perform(const struct call *call, const long *given, int bits, long number, int *is_touched) {
    long arguments[6];
    memcpy(arguments, given, sizeof arguments);
    if (plan_kind == FULL) {
        long left = __atomic_load_n(&bytes_left, __ATOMIC_SEQ_CST);
        if (call->faults & WRITES && call->length != NONE && arguments[call->length] > left) {
            *is_touched = 1;
            if (left <= 0) return -ENOSPC;
            arguments[call->length] = left;
        }
    } else if (number == plan_number && bits & 1 << plan_kind) {
        *is_touched = 1;
        struct timespec time = {0, 30 * 1000 * 1000};
        switch (plan_kind) {
        case EIO_KIND:
            // The descriptor is gone whatever close says.
            if (call->number == SYS_close) CALL(SYS_close, given[0]);
            return -EIO;
        case ENOSPC_KIND:
            return -ENOSPC;
        case EINTR_KIND:
            return -EINTR;
        case EMFILE_KIND:
            return -EMFILE;
        case SHORT:
            arguments[call->length] /= 2;
            break;
        case DELAY:
            CALL(SYS_nanosleep, &time, NULL);
            break;
        case KILL:
            CALL(SYS_kill, getpid(), SIGKILL);
            break;
        default:
            change();
        }
    }
    long result = layer_call(call->number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    if (call->faults & WRITES && result > 0) __atomic_sub_fetch(&bytes_left, result, __ATOMIC_SEQ_CST);
    return result;
}

// A line of the log; as short as a write that is not torn.
static void note(const struct call *call, int bits, long number, int is_touched, const char *path) {
    char line[4600];
    int length = snprintf(line, sizeof line, "%ld %s %s ", number, call->name, is_touched ? "!" : "-");
    for (int kind = 0; kind <= KILL; kind++) {
        if (bits & 1 << kind) length += snprintf(line + length, sizeof line - (size_t)length, "%s,", kinds[kind]);
    }
    length += snprintf(line + length, sizeof line - (size_t)length, " %s\n", path);
    CALL(SYS_write, log_file, line, length);
}

static void handle(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *machine = context;
#if defined(__x86_64__)
    greg_t *registers = machine->uc_mcontext.gregs;
    long arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                         registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
#else
    unsigned long long *registers = machine->uc_mcontext.regs;
    long arguments[6] = {(long)registers[0], (long)registers[1], (long)registers[2],
                         (long)registers[3], (long)registers[4], (long)registers[5]};
#endif
    const struct call *call = NULL;
    for (int index = 0; index < CALLS && call == NULL; index++) {
        if (calls[index].number == info->si_syscall) call = &calls[index];
    }
    long result = -ENOSYS;
    if (call != NULL) {
        char path[4400];
        path_of(call, arguments, path, sizeof path);
        // What is asked of a descriptor but not of its file is no input or output.
        int is_quiet = call->number == SYS_fcntl && arguments[1] != F_DUPFD_CLOEXEC && arguments[1] != F_SETLK &&
                       arguments[1] != F_SETLKW && arguments[1] != F_OFD_SETLK;
        if (is_quiet || !is_inside(path)) {
            result = layer_call(call->number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
        } else {
            int is_touched = 0;
            int bits = possible(call, arguments);
            long number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
            // What kills notes nothing afterwards.
            if (number == plan_number && plan_kind == KILL) note(call, bits, number, 1, path);
            result = perform(call, arguments, bits, number, &is_touched);
            note(call, bits, number, is_touched, path);
        }
    }
#if defined(__x86_64__)
    registers[REG_RAX] = result;
#else
    registers[0] = (unsigned long long)result;
#endif
}

static void refuse(const char *reason) {
    // A run without the layer would pass for one that met no fault.
    fprintf(stderr, "layer: %s (%s)\n", reason, strerror(errno));
    _exit(99);
}

__attribute__((constructor)) static void start(void) {
    const char *where = getenv("TERRANE_FAULTS_FOLDER");
    const char *log = getenv("TERRANE_FAULTS_LOG");
    const char *plan = getenv("TERRANE_FAULTS_PLAN");
    if (where == NULL || log == NULL) return;
    snprintf(folder, sizeof folder, "%s", where);
    folder_length = strlen(folder);
    if (plan != NULL) {
        char kind[32] = "";
        sscanf(plan, "%ld %31s %4095s", &plan_number, kind, plan_argument);
        for (plan_kind = 0; plan_kind < KINDS && strcmp(kinds[plan_kind], kind) != 0; plan_kind++) continue;
        if (plan_kind == KINDS) refuse("no such plan");
    }
    bytes_left = plan_kind == FULL ? atol(plan_argument) : 0;
    log_file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file < 0) refuse("no log");

    static struct sock_filter filter[CALLS + 16];
    uintptr_t end = (uintptr_t)layer_call_end;
    size_t count = 0;
#define STEP(...) filter[count++] = (struct sock_filter)__VA_ARGS__
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)end, 0, 3));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(end >> 32), 0, 1));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    // Memory that is no file's is none of ours.
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (int index = 0; index < CALLS; index++) {
        STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[index].number, (uint8_t)(CALLS - index), 0));
    }
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));

    struct sigaction action = {0};
    action.sa_sigaction = handle;
    // On the thread's own stack: the other one is small. Calls within the handler are none of ours, and others may come.
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSYS, &action, NULL) != 0) refuse("no handler");
    struct sock_fprog program = {(unsigned short)count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse("privileges cannot be given up");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) refuse("no seccomp");
}
