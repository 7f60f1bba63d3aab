/*
 * wait.c
 *		Waits in a queue until the session is let in, gives up, or is told to.
 */
#include "compat.h"

#include "utils/timestamp.h"

#include "clock.h"
#include "doze.h"
#include "gate.h"
#include "news.h"
#include "session.h"
#include "settings.h"
#include "slot.h"
#include "wait.h"
#include "word.h"

/* A monitor that was not heard of for this long is taken for dead. */
#define MONITOR_SILENCE_MAX_US INT64CONST(5000000)

/* How often 14, which has no event for it, looks whether the client is there. */
#define CLIENT_CHECK_MS 1000

#define ERRCODE_GOVERNOR_QUEUE_TIMEOUT MAKE_SQLSTATE('5', '3', 'G', '0', '1')
#define ERRCODE_GOVERNOR_QUEUE_FULL MAKE_SQLSTATE('5', '3', 'G', '0', '2')

static uint32 wait_event = 0;

static void wait_in_queue(int gate, int64 queued_at);
static bool holds_locks(void);
static bool is_waiting(void);
static long wait_slice_ms(int64 now, int64 deadline);
static void sleep_until_woken(long timeout_ms);
static bool monitor_is_silent(int64 now);
static void queue_timeout(int gate, int64 queued_at);
governor_noreturn static void give_up(int gate, int after_ms);
static void refuse(int gate);
static void log_wait(int gate, int64 queued_at);

void
governor_wait_start(void)
{
	wait_event = governor_wait_event_new("GovernorQueue");
}

/*
 * Queues for a slot, and returns with one: true if it was free after all.  In
 * mode "observe" it only queues, and returns at once.
 */
bool
governor_wait_for_slot(int gate, int role, bool at_begin)
{
	bool		observed = pg_atomic_read_u32(&governor->observing) != 0;
	uint64		how = observed ? GOVERNOR_OBSERVED : 0;
	int64		queued_at;

	if (!at_begin || holds_locks())
		how |= GOVERNOR_HOLDING;
	switch (governor_gate_join(gate, governor_my_index, role, how))
	{
		case GOVERNOR_JOIN_ENTERED:
			return true;
		case GOVERNOR_JOIN_REFUSED:
			if (!observed)
				refuse(gate);
			return false;
		case GOVERNOR_JOINED:
			break;
	}
	governor_doze_wake();
	if (observed)
		return false;
	queued_at = governor_my_session->queued_since;
	PG_TRY();
	{
		wait_in_queue(gate, queued_at);
	}
	PG_CATCH();
	{
		/* Let in at the very moment of the error: the next one gets the slot. */
		governor_slot_end(governor_my_index, GOVERNOR_LEAVE_CANCELLED);
		PG_RE_THROW();
	}
	PG_END_TRY();
	log_wait(gate, queued_at);
	return false;
}

static void
wait_in_queue(int gate, int64 queued_at)
{
	int64		timer_start = queued_at;

	while (is_waiting())
	{
		int64		now = governor_now_us();
		int64		deadline = PG_INT64_MAX;

		if (governor_queue_timeout_ms > 0)
			deadline = timer_start + governor_queue_timeout_ms * US_PER_MS;
		if (governor_user_queue_timeout_ms > 0)
		{
			if (now >= queued_at + governor_user_queue_timeout_ms * US_PER_MS)
				give_up(gate, governor_user_queue_timeout_ms);
			deadline = Min(deadline, queued_at + governor_user_queue_timeout_ms * US_PER_MS);
		}
		if (now >= deadline)
		{
			queue_timeout(gate, queued_at);
			timer_start = now;
			continue;
		}
		if (now - queued_at > MONITOR_SILENCE_MAX_US && monitor_is_silent(now))
		{
			governor_gate_run_anyway(governor_my_index, GOVERNOR_OPENED);
			continue;
		}
		sleep_until_woken(wait_slice_ms(now, deadline));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pg_read_barrier();
}

/*
 * Whether this process has locks for which others can wait: advisory locks of the
 * session, or locks of what was parsed or explained before BEGIN in the same message.
 * The lock of its virtual transaction does not count: without a snapshot nobody waits
 * for that.
 */
static bool
holds_locks(void)
{
	for (int i = 0; i < NUM_LOCK_PARTITIONS; i++)
		if (!governor_proc_locks_empty(MyProc, i))
			return true;
	for (int i = 0; i < governor_fast_path_words(); i++)
		if (governor_fast_path_word(i) != 0)
			return true;
	return false;
}

static bool
is_waiting(void)
{
	GovernorSessionState state = governor_state_of(governor_my_index);

	return state == GOVERNOR_QUEUED || state == GOVERNOR_ENTERING;
}

/* How long to sleep at most: few waiters are ever woken for this. */
static long
wait_slice_ms(int64 now, int64 deadline)
{
	long		slice_ms = MONITOR_SILENCE_MAX_US / 1000 + 1;

	if (!governor_socket_close_wakes())
		slice_ms = CLIENT_CHECK_MS;
	if (deadline != PG_INT64_MAX)
		slice_ms = Min(slice_ms, (deadline - now) / 1000 + 1);
	return slice_ms;
}

/*
 * Sleeps on the client's socket too, so that a queue does not fill up with
 * requests of clients that have gone.
 */
static void
sleep_until_woken(long timeout_ms)
{
	WaitEvent	event;
	int			events;

	if (!governor_socket_close_wakes())
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 timeout_ms, wait_event);
		if (!pq_check_connection())
			ClientConnectionLost = InterruptPending = true;
		return;
	}
	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, GOVERNOR_WL_SOCKET_CLOSED, NULL);
	events = WaitEventSetWait(FeBeWaitSet, timeout_ms, &event, 1, wait_event);
	if (events == 0)
		return;
	if (event.events & WL_POSTMASTER_DEATH)
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating connection due to unexpected postmaster exit")));
	if (event.events & GOVERNOR_WL_SOCKET_CLOSED)
		ClientConnectionLost = InterruptPending = true;
}

static bool
monitor_is_silent(int64 now)
{
	return governor->monitor == GOVERNOR_NOBODY ||
		now - (int64) pg_atomic_read_u64(&governor->monitor_beat) > MONITOR_SILENCE_MAX_US;
}

/* At the hard maximum "run" waits on, for the next timeout or its turn. */
static void
queue_timeout(int gate, int64 queued_at)
{
	uint64		held_back;

	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.timeouts++;
	LWLockRelease(governor_gate_lock(gate));

	switch ((GovernorOnTimeout) governor_on_timeout)
	{
		case GOVERNOR_TIMEOUT_RUN:
			if (governor_gate_run_anyway(governor_my_index, GOVERNOR_BY_TIMEOUT) &&
				governor_news_due(GOVERNOR_NEWS_TIMEOUT, &held_back))
				ereport(LOG,
						(errmsg("pg_governor: runs without a free slot after %.0f ms in the queue of class \"%s\" in pool \"%s\"",
								(governor_now_us() - queued_at) / 1000.0,
								governor_class_names[governor_class_of_gate(gate)],
								governor_pool_of_gate(gate)->name),
						 governor_news_detail(held_back)));
			break;
		case GOVERNOR_TIMEOUT_ERROR:
			give_up(gate, governor_queue_timeout_ms);
			break;
		case GOVERNOR_TIMEOUT_WAIT:
			break;
	}
}

static void
give_up(int gate, int after_ms)
{
	ereport(ERROR,
			(errcode(ERRCODE_GOVERNOR_QUEUE_TIMEOUT),
			 errmsg("canceling statement due to queue timeout"),
			 errdetail("No slot of class \"%s\" in pool \"%s\" became free within %d ms.",
					   governor_class_names[governor_class_of_gate(gate)],
					   governor_pool_of_gate(gate)->name, after_ms),
			 errhint("Nothing was done yet: the transaction can be tried again.")));
}

static void
refuse(int gate)
{
	ereport(ERROR,
			(errcode(ERRCODE_GOVERNOR_QUEUE_FULL),
			 errmsg("too many sessions are waiting for a slot"),
			 errdetail("The queue of class \"%s\" in pool \"%s\" has %u sessions.",
					   governor_class_names[governor_class_of_gate(gate)],
					   governor_pool_of_gate(gate)->name,
					   governor_gate_occupancy(governor_gate_at(gate)).queued),
			 errhint("Nothing was done yet: the transaction can be tried again later.")));
}

static void
log_wait(int gate, int64 queued_at)
{
	int64		waited_us = governor_now_us() - queued_at;

	if (governor_log_queue_waits_ms >= 0 && waited_us >= governor_log_queue_waits_ms * US_PER_MS)
		ereport(LOG,
				(errmsg("pg_governor: waited %.3f ms for a slot of class \"%s\" in pool \"%s\"",
						waited_us / 1000.0,
						governor_class_names[governor_class_of_gate(gate)],
						governor_pool_of_gate(gate)->name)));
}
