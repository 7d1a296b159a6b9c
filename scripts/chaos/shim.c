// For LD_PRELOAD: calls on files of a run's checkpoints take long or fail, as the file $CHAOS_FILES says at that moment,
// which all processes have mapped. Machines have such disks: slow ones, erring ones, file servers that forget a file.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, FSYNC = 4 };
static volatile const struct control {
  int error;         // errno of calls that fail; 0: none does
  int calls;         // which do
  int milliseconds;  // that each fsync() takes
} * control;

__attribute__((constructor)) static void map_control(void) {
  const char* path = getenv("CHAOS_FILES");
  const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) control = mapped;
  close(file);
}

static int is_of_checkpoint(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  return strstr(path, "/checkpoints/") != NULL;
}

static int fails(int call) {
  if ((control->calls & call) == 0 || control->error == 0) return 0;
  errno = control->error;
  return 1;
}

int fsync(int descriptor) {
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (control != NULL && (control->milliseconds != 0 || control->error != 0) && is_of_checkpoint(descriptor)) {
    usleep(1000 * (unsigned)control->milliseconds);
    if (fails(FSYNC)) return -1;
  }
  return next(descriptor);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  ssize_t (*next)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (control != NULL && control->error != 0 && is_of_checkpoint(descriptor) && fails(WRITE)) return -1;
  return next(descriptor, bytes, count);
}

#define DEFINE_OPEN(name)                                                                                    \
  int name(const char* path, int flags, ...) {                                                               \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;                                         \
    va_end(rest);                                                                                            \
    int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name);            \
    const int created = control != NULL && (flags & O_CREAT) != 0 && strstr(path, "/checkpoints/") != NULL; \
    return created && fails(OPEN) ? -1 : next(path, flags, mode);                                            \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
