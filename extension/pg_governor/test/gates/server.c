/*
 * server.c
 *		Stands in for the server: shared memory by mmap, LWLocks by mutexes that
 *		processes share.  Latches are flags, since here waiters poll.
 */
#include "server.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/delay.h"
#include "../../src/settings.h"
#include "storage/shmem.h"

int			governor_max_queue = 0;
int			governor_role_share = 60;
int			governor_pass_over_max_ms = 4;
PROC_HDR   *ProcGlobal;

static uint64 random_state = 1;

StaticAssertDecl(sizeof(pthread_mutex_t) <= sizeof(LWLockPadded), "a mutex fits into a lock");

void *
server_memory(Size size)
{
	void	   *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
	{
		perror("mmap");
		exit(1);
	}
	return memory;
}

void
server_start(int pools, int sessions)
{
	int			locks = 1 + pools * GOVERNOR_CLASSES;
	LWLockPadded *lock = server_memory(locks * sizeof(LWLockPadded));
	pthread_mutexattr_t shared;

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < locks; i++)
		pthread_mutex_init((pthread_mutex_t *) &lock[i], &shared);
	ProcGlobal = calloc(1, sizeof(PROC_HDR));
	ProcGlobal->allProcs = server_memory((sessions + 1) * sizeof(PGPROC));
	governor = server_memory(governor_shared_size(pools, sessions));
	governor_shared_init(pools, sessions);
	governor->registry_lock = &lock[0].lock;
	governor->gate_locks = &lock[1];
	governor->pool_count = pools;
	for (int i = 0; i < pools; i++)
		snprintf(governor->pools[i].name, NAMEDATALEN, "pool %d", i + 1);
}

void
server_seed(uint32 seed)
{
	random_state = UINT64CONST(0x9E3779B97F4A7C15) * (seed + 1);
}

uint32
server_random(uint32 below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32) (random_state >> 32) % below;
}

/* Mostly nothing; sometimes others run first; rarely for much longer than a step. */
#ifdef GOVERNOR_DELAYS
void
governor_delay(void)
{
	uint32		dice = server_random(256);

	if (dice < 2)
		usleep(20 + server_random(200));
	else if (dice < 32)
		sched_yield();
}
#endif

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	pthread_mutex_lock((pthread_mutex_t *) lock);
	return true;
}

void
LWLockRelease(LWLock *lock)
{
	pthread_mutex_unlock((pthread_mutex_t *) lock);
}

void
SetLatch(Latch *latch)
{
	pg_memory_barrier();
	latch->is_set = true;
}

Size
add_size(Size a, Size b)
{
	return a + b;
}

Size
mul_size(Size a, Size b)
{
	return a * b;
}

/* What check.c would write to the log goes to the standard error. */
bool
errstart(int level, const char *domain)
{
	return true;
}

#if PG_VERSION_NUM >= 130000
bool
errstart_cold(int level, const char *domain)
{
	return true;
}
#endif

int
errmsg(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return 0;
}

int
errhint(const char *format,...)
{
	return 0;
}

void
errfinish(const char *file, int line, const char *function)
{
}

#if PG_VERSION_NUM >= 160000
void
ExceptionalCondition(const char *condition, const char *file, int line)
#else
void
ExceptionalCondition(const char *condition, const char *type, const char *file, int line)
#endif
{
	fprintf(stderr, "%s:%d: failed assertion: %s\n", file, line, condition);
	abort();
}
