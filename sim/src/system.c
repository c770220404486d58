/* What a process is given by its system and cannot foresee, made to follow from a seed: random bits, from which the
 * keys of hash maps come too, and the time of day. It stands in front of the C library's own functions in this program
 * alone, and only where STREAMWELD_SIM_SEED is set; elsewhere the system is asked.
 *
 * The time of day stands still: nothing here may depend on how it passes. Timers use the monotonic clock, which the
 * simulation has of its own. */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* 2023-11-14T22:13:20Z: the fake Redis begins with the same. */
static const time_t BEGINNING = 1700000000;

static const char *seed(void) { return getenv("STREAMWELD_SIM_SEED"); }

/* SplitMix64, of each thread its own: what else a process does changes nothing for the one that simulates. */
static uint64_t next(const char *text) {
  static __thread uint64_t state;
  static __thread int begun;
  if (!begun) {
    begun = 1;
    state = strtoull(text, NULL, 10) * 0x2545f4914f6cdd1dULL + 1;
  }
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
  const char *text = seed();
  if (text == NULL)
    return syscall(SYS_getrandom, buffer, length, flags);
  unsigned char *bytes = buffer;
  for (size_t i = 0; i < length; i++)
    bytes[i] = (unsigned char)next(text);
  return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock == CLOCK_REALTIME && seed() != NULL) {
    time->tv_sec = BEGINNING;
    time->tv_nsec = 0;
    return 0;
  }
  return (int)syscall(SYS_clock_gettime, clock, time);
}
