/*
 * wait.c
 *		Waits in a queue until the session is let in, gives up, or is told to.
 */
#include "compat.h"

#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "deadline.h"
#include "doze.h"
#include "gate.h"
#include "news.h"
#include "session.h"
#include "settings.h"
#include "slot.h"
#include "wait.h"
#include "word.h"

/* How often 14, which has no event for it, looks whether the client is there. */
#define CLIENT_CHECK_MS 1000

/* How often who may have a reserved slot looks whether one is free. */
#define RESERVE_CHECK_MS 50

#define ERRCODE_GOVERNOR_QUEUE_TIMEOUT MAKE_SQLSTATE('5', '3', 'G', '0', '1')
#define ERRCODE_GOVERNOR_REFUSED MAKE_SQLSTATE('5', '3', 'G', '0', '2')
#define ERRCODE_GOVERNOR_EVICTED MAKE_SQLSTATE('5', '3', 'G', '0', '3')

#define NEVER PG_INT64_MAX

static uint32 wait_events[2];

static bool wait_in_queue(int gate, int64 queued_at);
static long longest_sleep_ms(void);
static void tell_monitor_is_gone(void);
static bool is_waiting(void);
static GovernorOnTimeout end_of_timeout(int gate);
static GovernorDeadlines deadlines_of(int gate, bool at_begin);
static bool obey_order(int gate);
static void queue_timeout(int gate, int64 queued_at);
governor_noreturn static void give_up(int gate, int64 after_ms);
static bool is_hopeless(int gate, bool at_begin, bool observed);
governor_noreturn static void refuse(int gate, const char *why);
static void tell_client(int gate);
static void log_wait(int gate, int64 queued_at, bool admitted);

void
governor_wait_start(void)
{
	wait_events[GOVERNOR_WAITS_IN_QUEUE] = governor_wait_event_new(GOVERNOR_QUEUE_EVENT);
	wait_events[GOVERNOR_WAITS_FOR_RESUME] = governor_wait_event_new(GOVERNOR_PAUSE_EVENT);
}

/* Queues for a slot, unless there is a reason not to. */
GovernorWaitEnd
governor_wait_for_slot(int gate, int role, bool at_begin, GovernorSnapshots *snapshots)
{
	bool		observed = governor_gate_is_observed(gate);
	uint64		how = observed ? GOVERNOR_OBSERVED : 0;
	bool		moved;
	int64		queued_at;

	if (!observed && governor_doze_gates_are_open())
		return GOVERNOR_WAIT_WITHOUT;
	if (is_hopeless(gate, at_begin, observed))
		return GOVERNOR_WAIT_WITHOUT;
	if (!at_begin || governor_wait_holds_locks())
		how |= GOVERNOR_HOLDING;
	pg_atomic_write_u32(&governor_my_session->order, GOVERNOR_ORDER_NONE);
	switch (governor_gate_join(gate, governor_my_index, role, how))
	{
		case GOVERNOR_JOIN_ENTERED:
			return GOVERNOR_WAIT_FREE;
		case GOVERNOR_JOIN_REFUSED:
			if (!observed)
				refuse(gate, "The queue is as long as pg_governor.max_queue allows.");
			return GOVERNOR_WAIT_WITHOUT;
		case GOVERNOR_JOINED:
			break;
	}
	governor_doze_wake();
	if (observed)
		return GOVERNOR_WAIT_OBSERVED;
	queued_at = governor_my_session->queued_since;
	governor_transaction_timeout_hold();
	PG_TRY();
	{
		governor_snapshots_give_up(snapshots);
		moved = wait_in_queue(gate, queued_at);
	}
	PG_CATCH();
	{
		/* Let in at the very moment of the error: the next one gets the slot. */
		governor_slot_end(governor_my_index, GOVERNOR_LEAVE_CANCELLED);
		governor_transaction_timeout_resume();
		log_wait(gate, queued_at, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	governor_transaction_timeout_resume();
	if (moved)
	{
		governor_slot_end(governor_my_index, GOVERNOR_LEAVE_MOVED);
		return GOVERNOR_WAIT_MOVED;
	}
	log_wait(gate, queued_at, true);
	return GOVERNOR_WAIT_ADMITTED;
}

/*
 * Until the session is let in; true if it is to queue elsewhere.  What others may change
 * meanwhile, and a reload too, is read anew each time that it wakes.
 */
static bool
wait_in_queue(int gate, int64 queued_at)
{
	GovernorPool *pool = governor_pool_of_gate(gate);
	int64		timer_start = queued_at;
	bool		told = false;
	GovernorBeatWatch watch = {0};

	while (is_waiting())
	{
		int64		now = governor_now_us();
		int64		timeout_ms = pg_atomic_read_u32(&pool->queue_timeout_ms);
		int64		timeout_at = timeout_ms > 0 ? timer_start + timeout_ms * US_PER_MS : NEVER;
		int64		user_at = governor_user_queue_timeout_ms > 0 ?
			queued_at + governor_user_queue_timeout_ms * US_PER_MS : NEVER;
		int64		tell_at = governor_notice_queue_waits_ms >= 0 && !told ?
			queued_at + governor_notice_queue_waits_ms * US_PER_MS : NEVER;
		int64		next;

		if (obey_order(gate))
			return true;
		if (now >= user_at)
			give_up(gate, governor_user_queue_timeout_ms);
		if (now >= timeout_at)
		{
			queue_timeout(gate, queued_at);
			timer_start = now;
			continue;
		}
		if (now >= tell_at)
		{
			tell_client(gate);
			told = true;
			continue;
		}
		if (governor_doze_gates_are_open())
		{
			governor_gate_run_anyway(governor_my_index, GOVERNOR_OPENED);
			continue;
		}
		if (governor_session_reserve_is_free())
			return true;
		next = Min(Min(timeout_at, user_at), tell_at);
		governor_wait_sleep(Min(next == NEVER ? longest_sleep_ms() : (next - now) / 1000 + 1,
								longest_sleep_ms()), GOVERNOR_WAITS_IN_QUEUE);
		if (governor_doze_watch(&watch))
			tell_monitor_is_gone();
	}
	pg_read_barrier();
	return false;
}

/* Until something is looked at that wakes nobody: the monitor's beat, a reserved slot. */
static long
longest_sleep_ms(void)
{
	if (governor_session_may_use_reserve())
		return RESERVE_CHECK_MS;
	return governor_doze_beat_is_late() && !governor_doze_monitor_is_gone() ? GOVERNOR_PROBE_MS :
		GOVERNOR_SILENCE_MS + 1;
}

static void
tell_monitor_is_gone(void)
{
	ereport(LOG,
			(errmsg("pg_governor: the monitor has not moved for %.0f s",
					(governor_now_us() - (int64) pg_atomic_read_u64(&governor->monitor_beat)) / 1e6),
			 pg_atomic_read_u32(&governor->strict) != 0 ?
			 errdetail("Nobody is let in until it goes on, since pg_governor.strict is on; slots that are released go from hand to hand.") :
			 errdetail("Every gate is open until it goes on."),
			 errhidestmt(true)));
}

/*
 * Whether this process has locks for which others can wait: advisory locks of the
 * session, or locks of what was parsed or explained before BEGIN in the same message.
 * The lock of its virtual transaction does not count: without a snapshot nobody waits
 * for that.
 */
bool
governor_wait_holds_locks(void)
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

/*
 * Sleeps on the client's socket too, so that a queue does not fill up with
 * requests of clients that have gone.
 */
void
governor_wait_sleep(long timeout_ms, GovernorWaitEvent waits_for)
{
	uint32		wait_event = wait_events[waits_for];
	WaitEvent	event;
	int			events;

	if (!governor_socket_close_wakes())
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(timeout_ms, CLIENT_CHECK_MS), wait_event);
		if (!pq_check_connection())
			ClientConnectionLost = InterruptPending = true;
	}
	else
	{
		ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, GOVERNOR_WL_SOCKET_CLOSED, NULL);
		events = WaitEventSetWait(FeBeWaitSet, timeout_ms, &event, 1, wait_event);
		if (events > 0 && (event.events & WL_POSTMASTER_DEATH))
			ereport(FATAL,
					(errcode(ERRCODE_ADMIN_SHUTDOWN),
					 errmsg("terminating connection due to unexpected postmaster exit")));
		if (events > 0 && (event.events & GOVERNOR_WL_SOCKET_CLOSED))
			ClientConnectionLost = InterruptPending = true;
	}
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* What happens at queue_timeout; under "strict" nobody runs without a slot. */
static GovernorOnTimeout
end_of_timeout(int gate)
{
	GovernorOnTimeout end = pg_atomic_read_u32(&governor_pool_of_gate(gate)->on_timeout);

	if (end == GOVERNOR_TIMEOUT_RUN && pg_atomic_read_u32(&governor->strict))
		return GOVERNOR_TIMEOUT_ERROR;
	return end;
}

/*
 * What ends this session's wait, or its work, with an error.  At BEGIN statement_timeout is only about BEGIN
 * itself: each statement of the block has it anew.
 */
static GovernorDeadlines
deadlines_of(int gate, bool at_begin)
{
	GovernorDeadlines deadlines = {.slot_ms = GOVERNOR_NO_DEADLINE, .done_ms = GOVERNOR_NO_DEADLINE};
	int64		timeout_ms = pg_atomic_read_u32(&governor_pool_of_gate(gate)->queue_timeout_ms);

	if (timeout_ms > 0 && end_of_timeout(gate) == GOVERNOR_TIMEOUT_ERROR)
		governor_deadline_add(&deadlines.slot_ms, timeout_ms);
	if (governor_user_queue_timeout_ms > 0)
		governor_deadline_add(&deadlines.slot_ms, governor_user_queue_timeout_ms);
	if (get_timeout_active(STATEMENT_TIMEOUT))
		governor_deadline_add(at_begin ? &deadlines.slot_ms : &deadlines.done_ms,
							  (get_timeout_finish_time(STATEMENT_TIMEOUT) - GetCurrentTimestamp()) / 1000);
	if (governor_transaction_timeout_runs())
		governor_deadline_add(&deadlines.done_ms, governor_transaction_timeout_left_ms());
	return deadlines;
}

/* What somebody else wants of this session while it queues; true: to queue elsewhere. */
static bool
obey_order(int gate)
{
	uint32		order = pg_atomic_read_u32(&governor_my_session->order);

	if (order == GOVERNOR_ORDER_NONE)
		return false;
	pg_atomic_write_u32(&governor_my_session->order, GOVERNOR_ORDER_NONE);
	switch ((GovernorOrder) order)
	{
		case GOVERNOR_ORDER_SHED:
			LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
			governor_gate_at(gate)->stats.refused++;
			LWLockRelease(governor_gate_lock(gate));
			refuse(gate, "The queue has been too slow for too long (policy \"codel\").");
			break;
		case GOVERNOR_ORDER_EVICT:
			ereport(ERROR,
					(errcode(ERRCODE_GOVERNOR_EVICTED),
					 errmsg("removed from the queue for a slot by an administrator")));
			break;
		case GOVERNOR_ORDER_MOVE:
			return true;
		case GOVERNOR_ORDER_NONE:
			break;
	}
	return false;
}

static void
queue_timeout(int gate, int64 queued_at)
{
	uint64		held_back;

	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.timeouts++;
	LWLockRelease(governor_gate_lock(gate));

	switch (end_of_timeout(gate))
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
			give_up(gate, (governor_now_us() - queued_at) / 1000);
			break;
		case GOVERNOR_TIMEOUT_WAIT:
			break;
	}
}

static void
give_up(int gate, int64 after_ms)
{
	uint64		held_back;

	if (governor_news_due(GOVERNOR_NEWS_GAVE_UP, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: a session of class \"%s\" in pool \"%s\" gave up after %lld ms in the queue",
						governor_class_names[governor_class_of_gate(gate)],
						governor_pool_of_gate(gate)->name, (long long) after_ms),
				 governor_news_detail(held_back), errhidestmt(true)));
	ereport(ERROR,
			(errcode(ERRCODE_GOVERNOR_QUEUE_TIMEOUT),
			 errmsg("canceling statement due to queue timeout"),
			 errdetail("No slot of class \"%s\" in pool \"%s\" became free within %lld ms.",
					   governor_class_names[governor_class_of_gate(gate)],
					   governor_pool_of_gate(gate)->name, (long long) after_ms),
			 errhint("Nothing was done yet: the transaction can be tried again.")));
}

/*
 * Whether it would miss a timeout, by what is in front at the pace of the last slots: then it is refused, or, where nobody
 * waits, would have been.
 */
static bool
is_hopeless(int gate_index, bool at_begin, bool observed)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorForecast forecast = {0};
	GovernorVerdict verdict;

	if (!governor_refuse_early)
		return false;
	forecast.wait_us = (int64) (governor_gate_occupancy(gate).queued + 1) * pg_atomic_read_u32(&gate->place_us);
	forecast.service_us = pg_atomic_read_u32(&gate->service_us);
	verdict = governor_deadline_judge(deadlines_of(gate_index, at_begin), forecast);
	if (!verdict.too_late)
		return false;
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	gate->stats.refused++;
	gate->stats.refused_early++;
	LWLockRelease(governor_gate_lock(gate_index));
	if (observed)
		return true;
	refuse(gate_index, psprintf("It would take about %lld ms%s, and the timeout is %lld ms. retry_after_ms=%lld",
								(long long) verdict.needed_ms, verdict.by_work ? " with its work" : "",
								(long long) verdict.deadline_ms, (long long) verdict.retry_after_ms));
}

static void
refuse(int gate, const char *why)
{
	uint64		held_back;

	if (governor_news_due(GOVERNOR_NEWS_REFUSED, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: refused a session of class \"%s\" in pool \"%s\": %s",
						governor_class_names[governor_class_of_gate(gate)],
						governor_pool_of_gate(gate)->name, why),
				 governor_news_detail(held_back), errhidestmt(true)));
	ereport(ERROR,
			(errcode(ERRCODE_GOVERNOR_REFUSED),
			 errmsg("too many sessions are waiting for a slot"),
			 errdetail("The queue of class \"%s\" in pool \"%s\" has %u sessions. %s",
					   governor_class_names[governor_class_of_gate(gate)],
					   governor_pool_of_gate(gate)->name,
					   governor_gate_occupancy(governor_gate_at(gate)).queued, why),
			 errhint("Nothing was done yet: the transaction can be tried again later.")));
}

/*
 * Keeps refusals and timeouts of the queue out of the log but for their own lines: a server that is overloaded must not
 * write the warning at BEGIN and the error of the first statement, with their details, for each.
 */
void
governor_wait_quieten(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_GOVERNOR_REFUSED || error->sqlerrcode == ERRCODE_GOVERNOR_QUEUE_TIMEOUT)
		error->output_to_server = false;
}

static void
tell_client(int gate)
{
	ereport(NOTICE,
			(errmsg("waiting for a slot of class \"%s\" in pool \"%s\"",
					governor_class_names[governor_class_of_gate(gate)], governor_pool_of_gate(gate)->name),
			 errdetail("%u sessions queue.", governor_gate_occupancy(governor_gate_at(gate)).queued)));
	/* A client that does not read must not hold up the queue. */
	pq_flush_if_writable();
}

static void
log_wait(int gate, int64 queued_at, bool admitted)
{
	int64		waited_us = governor_now_us() - queued_at;

	if (governor_log_queue_waits_ms >= 0 && waited_us >= governor_log_queue_waits_ms * US_PER_MS)
		ereport(LOG,
				(errmsg(admitted ? "pg_governor: waited %.3f ms for a slot of class \"%s\" in pool \"%s\"" :
						"pg_governor: waited %.3f ms in vain for a slot of class \"%s\" in pool \"%s\"",
						waited_us / 1000.0,
						governor_class_names[governor_class_of_gate(gate)],
						governor_pool_of_gate(gate)->name)));
}
