/*
 * session.c
 *		Decides once for each transaction of this session whether it needs a slot,
 *		waits for it, and gives it back when the transaction has ended.
 *
 * In doubt a transaction runs without a slot: processes that are not clients,
 * connections that come from a session of this same server, processes that are
 * ending, places where an interrupt could not be served.
 */
#include "compat.h"

#include "access/xact.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "gate.h"
#include "monitor.h"
#include "pool.h"
#include "session.h"
#include "settings.h"
#include "standing.h"

/*
 * A session that usually stays away for longer than this, and for longer than
 * its transactions last, lets go at once: its slot would be idle for most of
 * the time.  So does one of which nothing is known yet.
 */
#define RETURN_GAP_MAX_US 2000
#define RETURN_GAP_UNKNOWN (-1)

/* By then a turn has paid for what its cold caches cost many times over. */
#define WARM_TRANSACTIONS_MAX 32

/* A gap counts at most this much, so that one long pause is soon forgotten. */
#define RETURN_GAP_COUNTED_US 20000

/* A monitor that was not heard of for this long is taken for dead. */
#define MONITOR_SILENCE_MAX_MS 5000

/* How often 14, which has no event for it, looks whether the client is there. */
#define CLIENT_CHECK_MS 1000

#define ERRCODE_GOVERNOR_QUEUE_TIMEOUT MAKE_SQLSTATE('5', '3', 'G', '0', '1')
#define ERRCODE_GOVERNOR_QUEUE_FULL MAKE_SQLSTATE('5', '3', 'G', '0', '2')

int			governor_utility_depth = 0;

static bool decided = false;
static bool exiting = false;
static GovernorStanding standing = GOVERNOR_UNKNOWN;
static int	identity_generation = 0;
static int	my_index = GOVERNOR_NOBODY;
static GovernorSession *my_session = NULL;

/* With policy "throughput": until when this session may go on, and its habits. */
static TimestampTz warm_until = 0;
static int	warm_transactions = 0;
static TimestampTz finished_at = 0;
static int64 return_gap_us = RETURN_GAP_UNKNOWN;
static int64 service_us = 0;

static uint32 wait_event = 0;

static void transaction_ended(XactEvent event, void *arg);
static void session_exit(int code, Datum arg);
static void attach(void);
static void hand_in_counts(void);
static bool may_wait(void);
static bool enter_at_once(int gate, GovernorClass class);
static bool go_on_warm(int gate, GovernorClass class);
static bool take_reserved_slot(int gate);
static void queue_for_slot(int gate);
static void wait_in_queue(int gate, TimestampTz queued_at);
static long wait_slice_ms(TimestampTz now, TimestampTz deadline);
static void sleep_until_woken(long timeout_ms);
static bool monitor_is_silent(TimestampTz now);
static void queue_timeout(int gate);
static void refuse(int gate);
static void running(TimestampTz since);
static void set_warm_until(int gate, TimestampTz now);
static bool stay_warm(GovernorGate *gate, TimestampTz now);
static void let_go(void);

/* Called by the postmaster; sessions inherit it. */
void
governor_session_start(void)
{
	RegisterXactCallback(transaction_ended, NULL);
}

/* Whether this transaction may still have to take a slot. */
bool
governor_session_undecided(void)
{
	return !decided && governor_utility_depth == 0;
}

/* This transaction takes no slot any more, whatever comes. */
void
governor_session_bypass(void)
{
	decided = true;
}

/* Lets the monitor tell a session that works from one that waits. */
void
governor_session_statement(void)
{
	if (my_session != NULL)
		my_session->statements++;
}

/*
 * Takes a slot for this transaction, which may wait, or fail with an error.
 * Exactly one decision is made for each transaction: what began without a slot
 * may hold locks by now, and must not queue any more.
 */
void
governor_session_admit(GovernorClass class)
{
	int			gate;

	if (!governor_session_undecided())
		return;
	decided = true;
	if (governor == NULL || !may_wait())
		return;
	attach();
	if (standing == GOVERNOR_EXEMPT || my_session->pool == GOVERNOR_NO_POOL)
		return;
	gate = my_session->pool * GOVERNOR_CLASSES + class;
	if (!enter_at_once(gate, class))
		queue_for_slot(gate);
}

static void
transaction_ended(XactEvent event, void *arg pg_attribute_unused())
{
	GovernorGate *gate;

	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			break;
		default:
			return;
	}
	/* CALL with COMMIT, VACUUM: one slot, or none, for the whole statement */
	if (governor_utility_depth > 0)
		return;
	decided = false;
	if (my_session == NULL)
		return;
	switch (pg_atomic_read_u32(&my_session->state))
	{
		case GOVERNOR_RUNNING:
			gate = governor_gate_at(my_session->gate);

			/*
			 * Also while nobody queues: when a queue forms, a session that
			 * learned only then that it stays away would waste a slot first.
			 */
			finished_at = GetCurrentTimestamp();
			service_us += (finished_at - my_session->since - service_us) / 4;
			if (governor_gate_occupancy(gate).queued > 0 && stay_warm(gate, finished_at))
			{
				pg_atomic_fetch_add_u64(&gate->progress, 1);
				my_session->since = finished_at;
				pg_write_barrier();
				pg_atomic_write_u32(&my_session->state, GOVERNOR_WARM);
				return;
			}
			let_go();
			break;
		case GOVERNOR_RESERVED:
			let_go();
			break;
		default:
			break;
	}
}

/*
 * Runs before the aborting of an open transaction, and before temporary tables
 * are dropped in a new one, which must not queue.
 */
static void
session_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	exiting = true;
	LWLockReleaseAll();
	if (pg_atomic_read_u32(&my_session->state) == GOVERNOR_QUEUED)
		governor_gate_leave(my_session->gate, my_index);
	let_go();
	hand_in_counts();
	my_session->pid = 0;
}

/* Finds or renews what this session is; cheap when nothing has changed. */
static void
attach(void)
{
	if (my_session == NULL)
	{
		my_index = governor_my_proc_number();
		if (my_index < 0 || my_index >= governor->session_count)
		{
			/* Not a client's process: there is nothing to keep its state in. */
			standing = GOVERNOR_EXEMPT;
			return;
		}
		my_session = governor_session_at(my_index);
		my_session->pool = GOVERNOR_NO_POOL;
		my_session->gate = GOVERNOR_NOBODY;
		my_session->discounted = false;
		my_session->blocks_others = false;
		my_session->pid = MyProcPid;
		before_shmem_exit(session_exit, (Datum) 0);
		wait_event = governor_wait_event_new("GovernorQueue");
	}
	if (standing == GOVERNOR_UNKNOWN || identity_generation != governor_identity_generation)
	{
		identity_generation = governor_identity_generation;
		standing = governor_find_standing();
		hand_in_counts();
		if (standing != GOVERNOR_EXEMPT)
			my_session->pool = governor_pool_find_or_add(governor_pool_name);
	}
}

/* What this session counted for its pool becomes the pool's own. */
static void
hand_in_counts(void)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		uint64		admits_free = pg_atomic_exchange_u64(&my_session->admits_free[class], 0);
		uint64		admits_again = pg_atomic_exchange_u64(&my_session->admits_again[class], 0);
		int			gate = my_session->pool * GOVERNOR_CLASSES + class;

		if (admits_free + admits_again == 0 || my_session->pool == GOVERNOR_NO_POOL)
			continue;
		LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
		governor_gate_at(gate)->stats.admits[GOVERNOR_FREE] += admits_free;
		governor_gate_at(gate)->stats.admits[GOVERNOR_AGAIN] += admits_again;
		LWLockRelease(governor_gate_lock(gate));
	}
	pg_atomic_write_u64(&my_session->waits, 0);
	pg_atomic_write_u64(&my_session->wait_us_total, 0);
	pg_atomic_write_u64(&my_session->wait_us_max, 0);
}

static bool
may_wait(void)
{
	return IsUnderPostmaster && !exiting && !proc_exit_inprogress &&
		CritSectionCount == 0 && InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0;
}

static bool
enter_at_once(int gate, GovernorClass class)
{
	if (finished_at != 0)
	{
		int64		gap_us = GetCurrentStatementStartTimestamp() - finished_at;

		gap_us = Max(0, Min(gap_us, RETURN_GAP_COUNTED_US));
		if (return_gap_us == RETURN_GAP_UNKNOWN)
			return_gap_us = gap_us;
		else
			return_gap_us += (gap_us - return_gap_us) / 4;
		finished_at = 0;
	}
	if (go_on_warm(gate, class))
		return true;
	switch (governor_gate_enter(gate))
	{
		case GOVERNOR_OPEN:
			return true;
		case GOVERNOR_ENTERED:
			my_session->gate = gate;
			pg_atomic_fetch_add_u64(&my_session->admits_free[class], 1);
			set_warm_until(gate, GetCurrentStatementStartTimestamp());
			running(GetCurrentStatementStartTimestamp());
			return true;
		case GOVERNOR_FULL:
			break;
	}
	return take_reserved_slot(gate);
}

static bool
go_on_warm(int gate, GovernorClass class)
{
	uint32		warm = GOVERNOR_WARM;

	if (pg_atomic_read_u32(&my_session->state) != GOVERNOR_WARM ||
		!pg_atomic_compare_exchange_u32(&my_session->state, &warm, GOVERNOR_RUNNING))
		return false;
	if (my_session->gate == gate)
	{
		warm_transactions++;
		pg_atomic_fetch_add_u64(&my_session->admits_again[class], 1);
		my_session->since = GetCurrentStatementStartTimestamp();
		return true;
	}
	let_go();
	return false;
}

static bool
take_reserved_slot(int gate)
{
	uint32		taken;

	if (standing != GOVERNOR_PRIVILEGED)
		return false;
	taken = pg_atomic_read_u32(&governor->reserved_taken);
	do
	{
		if (taken >= (uint32) governor_reserved_slots)
			return false;
	} while (!pg_atomic_compare_exchange_u32(&governor->reserved_taken, &taken, taken + 1));

	my_session->gate = gate;
	my_session->since = GetCurrentStatementStartTimestamp();
	pg_atomic_write_u32(&my_session->state, GOVERNOR_RESERVED);
	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.admits[GOVERNOR_BY_RESERVE]++;
	LWLockRelease(governor_gate_lock(gate));
	return true;
}

static void
queue_for_slot(int gate)
{
	TimestampTz now;

	my_session->gate = gate;
	switch (governor_gate_join(gate, my_index))
	{
		case GOVERNOR_JOIN_ENTERED:
			pg_atomic_fetch_add_u64(&my_session->admits_free[gate % GOVERNOR_CLASSES], 1);
			now = GetCurrentTimestamp();
			running(now);
			set_warm_until(gate, now);
			return;
		case GOVERNOR_JOIN_REFUSED:
			refuse(gate);
			return;
		case GOVERNOR_JOINED:
			break;
	}
	governor_monitor_wake();
	PG_TRY();
	{
		wait_in_queue(gate, my_session->since);
	}
	PG_CATCH();
	{
		/* Let in at the very moment of the error: the next one gets the slot. */
		if (!governor_gate_leave(gate, my_index))
			let_go();
		PG_RE_THROW();
	}
	PG_END_TRY();
	set_warm_until(gate, GetCurrentTimestamp());
}

static void
wait_in_queue(int gate, TimestampTz queued_at)
{
	TimestampTz timer_start = queued_at;

	while (pg_atomic_read_u32(&my_session->state) == GOVERNOR_QUEUED)
	{
		TimestampTz now = GetCurrentTimestamp();
		TimestampTz deadline = DT_NOEND;

		if (governor_queue_timeout_ms > 0)
			deadline = timer_start + governor_queue_timeout_ms * INT64CONST(1000);
		if (now >= deadline)
		{
			queue_timeout(gate);
			timer_start = now;
			continue;
		}
		if (now - queued_at > MONITOR_SILENCE_MAX_MS * INT64CONST(1000) &&
			monitor_is_silent(now))
		{
			governor_gate_run_anyway(gate, my_index, GOVERNOR_OPENED);
			continue;
		}
		sleep_until_woken(wait_slice_ms(now, deadline));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pg_read_barrier();
}

/* How long to sleep at most: few waiters are ever woken for this. */
static long
wait_slice_ms(TimestampTz now, TimestampTz deadline)
{
	long		slice_ms = MONITOR_SILENCE_MAX_MS + 1;

	if (!governor_socket_close_wakes())
		slice_ms = CLIENT_CHECK_MS;
	if (deadline != DT_NOEND)
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
	int			count;

	if (!governor_socket_close_wakes())
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 timeout_ms, wait_event);
		if (!pq_check_connection())
			ClientConnectionLost = InterruptPending = true;
		return;
	}
	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, GOVERNOR_WL_SOCKET_CLOSED, NULL);
	count = WaitEventSetWait(FeBeWaitSet, timeout_ms, &event, 1, wait_event);
	if (count == 0)
		return;
	if (event.events & WL_POSTMASTER_DEATH)
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating connection due to unexpected postmaster exit")));
	if (event.events & GOVERNOR_WL_SOCKET_CLOSED)
		ClientConnectionLost = InterruptPending = true;
}

static bool
monitor_is_silent(TimestampTz now)
{
	TimestampTz beat = (TimestampTz) pg_atomic_read_u64(&governor->monitor_beat);

	return governor->monitor == GOVERNOR_NOBODY ||
		now - beat > MONITOR_SILENCE_MAX_MS * INT64CONST(1000);
}

static void
queue_timeout(int gate)
{
	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.timeouts++;
	LWLockRelease(governor_gate_lock(gate));

	switch ((GovernorOnTimeout) governor_on_timeout)
	{
		case GOVERNOR_TIMEOUT_RUN:
			governor_gate_run_anyway(gate, my_index, GOVERNOR_BY_TIMEOUT);
			break;
		case GOVERNOR_TIMEOUT_ERROR:
			ereport(ERROR,
					(errcode(ERRCODE_GOVERNOR_QUEUE_TIMEOUT),
					 errmsg("canceling statement due to queue timeout"),
					 errdetail("No slot of class \"%s\" in pool \"%s\" became free within %d ms.",
							   governor_class_names[gate % GOVERNOR_CLASSES],
							   governor->pools[gate / GOVERNOR_CLASSES].name,
							   governor_queue_timeout_ms),
					 errhint("Nothing was done yet: the transaction can be tried again.")));
			break;
		case GOVERNOR_TIMEOUT_WAIT:
			break;
	}
}

static void
refuse(int gate)
{
	ereport(ERROR,
			(errcode(ERRCODE_GOVERNOR_QUEUE_FULL),
			 errmsg("too many sessions are waiting for a slot"),
			 errdetail("The queue of class \"%s\" in pool \"%s\" has %d or more sessions.",
					   governor_class_names[gate % GOVERNOR_CLASSES],
					   governor->pools[gate / GOVERNOR_CLASSES].name,
					   governor_max_queue),
			 errhint("Nothing was done yet: the transaction can be tried again later.")));
}

static void
running(TimestampTz since)
{
	my_session->since = since;
	pg_write_barrier();
	pg_atomic_write_u32(&my_session->state, GOVERNOR_RUNNING);
}

/*
 * A session goes on for the time that lets everybody who queues have a turn
 * within three quarters of pass_over_max, but for warm_time at most.  The last
 * quarter is for transactions that outlast their session's time: where the head
 * of the queue reaches that age, turns end at once, and cold caches are all
 * that is left.
 */
static void
set_warm_until(int gate_index, TimestampTz now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	int64		share_us = governor_warm_time_ms * INT64CONST(1000);

	if (occupancy.queued > 0)
		share_us = Min(share_us, governor_pass_over_max_ms * INT64CONST(750) *
					   occupancy.taken / occupancy.queued);
	warm_until = now + share_us;
	warm_transactions = 0;
}

static bool
stay_warm(GovernorGate *gate, TimestampTz now)
{
	TimestampTz head_since = (TimestampTz) pg_atomic_read_u64(&gate->head_since);
	uint32		capacity = pg_atomic_read_u32(&gate->capacity);

	return governor_policy == GOVERNOR_THROUGHPUT &&
		now < warm_until &&
		warm_transactions < WARM_TRANSACTIONS_MAX &&
		return_gap_us != RETURN_GAP_UNKNOWN &&
		return_gap_us <= Max(RETURN_GAP_MAX_US, service_us) &&
		now - head_since <= governor_pass_over_max_ms * INT64CONST(1000) &&
		governor_gate_occupancy(gate).taken <= capacity;
}

/* Gives back whatever this session has. */
static void
let_go(void)
{
	uint32		state = pg_atomic_exchange_u32(&my_session->state, GOVERNOR_IDLE);

	switch (state)
	{
		case GOVERNOR_RUNNING:
		case GOVERNOR_WARM:
			governor_gate_release(my_session->gate);
			break;
		case GOVERNOR_RESERVED:
			pg_atomic_fetch_sub_u32(&governor->reserved_taken, 1);
			break;
		default:
			break;
	}
}
