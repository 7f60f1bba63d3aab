/*
 * gate.c
 *		Takes slots, releases them, and keeps the queue; state.h has the rules of
 *		locking.
 *
 * A slot that is released while somebody queues is handed to a waiter, so that
 * no newcomer can be faster.  Where the limit was lowered in the meantime, or
 * sessions were let in beyond it, the slot disappears instead.
 *
 * The next slot goes to the role with the fewest slots that work, among those to the one
 * whose first waiter has waited longest.
 *
 * It uses nothing of the server but atomics, LWLocks and latches, so that the
 * storm test and the microbenchmark can run it without a server.
 */
#include "compat.h"

#include "clock.h"
#include "delay.h"
#include "gate.h"
#include "queue.h"
#include "settings.h"
#include "share.h"
#include "state.h"
#include "word.h"

/* Sessions woken after one hold of the lock: bounds the time it is held. */
#define ADMIT_BATCH 32

#define ONE_TAKEN UINT64CONST(1)
#define ONE_QUEUED (UINT64CONST(1) << 32)

static GovernorOccupancy unpack(uint64 word);
static bool has_room(GovernorGate *gate, uint32 taken);
static void hand_to_waiter(int gate, uint64 flags);
static bool take_if_room(GovernorGate *gate);
static bool queue_if_full(GovernorGate *gate, int role);
static bool queue_is_full(GovernorGate *gate, int role);
static int	admit_next(int gate, GovernorReason reason, int64 now);
static void admit_anyway(int gate, int session, GovernorReason reason);
static int	set_waiter_state(int session, GovernorSessionState state);
static void admit(int gate, int session, GovernorReason reason, uint64 flags, int64 now);
static bool is_at_ceiling(GovernorGate *gate);
static void wake(int session);

GovernorOccupancy
governor_gate_occupancy(GovernorGate *gate)
{
	return unpack(pg_atomic_read_u64(&gate->occupancy));
}

/* At any gate. */
bool
governor_gate_anyone_queued(void)
{
	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (governor_gate_occupancy(governor_gate_at(gate)).queued > 0)
			return true;
	return false;
}

/*
 * Takes a slot without a lock, if one is free and nobody queues.  The caller's
 * word says ENTERING.
 */
bool
governor_gate_take(int gate_index, int role, uint64 *flags)
{
	GovernorGate *gate = governor_gate_at(gate_index);

	if (!take_if_room(gate))
		return false;
	GOVERNOR_DELAY();
	if (governor_share_take(gate_index, role, flags))
		return true;
	governor_gate_release(gate_index, role, 0);
	return false;
}

/*
 * Takes a slot whoever queues and however many are taken, for a session that cannot
 * queue any more.  The caller's word says ENTERING.  Returns the flags.
 */
uint64
governor_gate_take_anyway(int gate_index, int role)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint64		flags = governor_share_force(gate_index, role);

	pg_atomic_fetch_add_u64(&gate->occupancy, ONE_TAKEN);
	GOVERNOR_DELAY();
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	gate->stats.admits[GOVERNOR_BOOKED]++;
	LWLockRelease(governor_gate_lock(gate_index));
	return flags;
}

/* Releases one slot, and what it was counted in, or hands it to a waiter. */
void
governor_gate_release(int gate_index, int role, uint64 flags)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint64		seen;

	governor_share_release(gate_index, role, flags);
	GOVERNOR_DELAY();
	seen = pg_atomic_read_u64(&gate->occupancy);
	for (;;)
	{
		Assert(unpack(seen).taken > 0);
		if (unpack(seen).queued > 0)
		{
			hand_to_waiter(gate_index, flags);
			break;
		}
		if (pg_atomic_compare_exchange_u64(&gate->occupancy, &seen, seen - ONE_TAKEN))
			break;
	}
	if (flags & GOVERNOR_COUNTED)
		governor_share_hand_on();
}

/* A slot that was counted over all pools goes to whichever gate's turn it is. */
static void
hand_to_waiter(int gate_index, uint64 flags)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			next = GOVERNOR_NOBODY;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	pg_atomic_fetch_sub_u64(&gate->occupancy, ONE_TAKEN);
	GOVERNOR_DELAY();
	if (!(flags & GOVERNOR_COUNTED) || !governor_share_is_limited())
		next = admit_next(gate_index, GOVERNOR_TURN, governor_now_us());
	LWLockRelease(governor_gate_lock(gate_index));
	pg_atomic_fetch_add_u64(&gate->progress, 1);
	wake(next);
}

/*
 * Queues, unless a slot is free after all.  The session's word says IDLE before,
 * and QUEUED or RUNNING after; it is unchanged if the queue is too long.  "how" are
 * the flags of a session that queues.
 */
GovernorJoin
governor_gate_join(int gate_index, int session, int role, uint64 how)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		before = pg_atomic_read_u64(word);
	uint64		flags = 0;
	GovernorJoin result = GOVERNOR_JOINED;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	if (queue_is_full(gate, role))
	{
		gate->stats.refused++;
		LWLockRelease(governor_gate_lock(gate_index));
		return GOVERNOR_JOIN_REFUSED;
	}
	pg_atomic_write_u64(word, governor_word_next(before, GOVERNOR_ENTERING, gate_index, role, 0));
	pg_memory_barrier();
	GOVERNOR_DELAY();
	if (!queue_if_full(gate, role))
	{
		if (governor_share_take(gate_index, role, &flags))
		{
			result = GOVERNOR_JOIN_ENTERED;
			governor_session_at(session)->since = governor_now_us();
			governor_session_at(session)->is_long = false;
			pg_write_barrier();
			before = pg_atomic_read_u64(word);
			pg_atomic_write_u64(word, governor_word_next(before, GOVERNOR_RUNNING, gate_index,
														 role, flags));
			LWLockRelease(governor_gate_lock(gate_index));
			return result;
		}
		/* There is a slot, but not for this role or over all pools. */
		pg_atomic_fetch_add_u64(&gate->occupancy, ONE_QUEUED - ONE_TAKEN);
	}
	GOVERNOR_DELAY();
	governor_queue_append(gate, session, role);
	before = pg_atomic_read_u64(word);
	pg_atomic_write_u64(word, governor_word_next(before, GOVERNOR_QUEUED, gate_index, role, how));
	LWLockRelease(governor_gate_lock(gate_index));

	/* A slot over all pools, released before this queue was seen, is seen now. */
	governor_share_hand_on();
	return result;
}

/*
 * Leaves the queue without a slot.  False if the session was let in meanwhile:
 * then it has a slot, and has to release it.
 */
bool
governor_gate_leave(int session, GovernorLeave how)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	int			gate_index = governor_word_gate(pg_atomic_read_u64(word));
	GovernorGate *gate;
	uint64		now_word;
	bool		queued;

	if (gate_index < 0)
		return false;
	gate = governor_gate_at(gate_index);
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	now_word = pg_atomic_read_u64(word);
	queued = governor_word_state(now_word) == GOVERNOR_QUEUED;
	if (queued)
	{
		governor_queue_remove(gate, session, governor_word_role(now_word));
		pg_atomic_fetch_sub_u64(&gate->occupancy, ONE_QUEUED);
		pg_atomic_write_u64(word, governor_word_next(now_word, GOVERNOR_IDLE, GOVERNOR_NOBODY, 0, 0));
		if (how == GOVERNOR_LEAVE_CANCELLED)
			gate->stats.cancelled++;
		else if (how == GOVERNOR_LEAVE_OBSERVED)
			governor_queue_count_wait(&gate->stats,
					   governor_now_us() - governor_session_at(session)->queued_since);
	}
	LWLockRelease(governor_gate_lock(gate_index));
	return queued;
}

/* Lets one session in beyond every bound.  False if it does not queue any more. */
bool
governor_gate_run_anyway(int session, GovernorReason reason)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		seen = pg_atomic_read_u64(word);
	int			gate_index = governor_word_gate(seen);
	bool		admitted;

	if (governor_word_state(seen) != GOVERNOR_QUEUED || gate_index < 0 ||
		gate_index >= governor_gate_count())
		return false;
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	seen = pg_atomic_read_u64(word);
	admitted = governor_word_state(seen) == GOVERNOR_QUEUED &&
		governor_word_gate(seen) == gate_index;
	if (admitted)
		admit_anyway(gate_index, session, reason);
	LWLockRelease(governor_gate_lock(gate_index));
	if (admitted)
		wake(session);
	return admitted;
}

/* Lets in as many as there are slots for, or all if the gate is open. */
void
governor_gate_admit_free(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			admitted[ADMIT_BATCH];
	int			count;

	do
	{
		int64		now = governor_now_us();
		int			next;

		count = 0;
		LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
		while (count < ADMIT_BATCH &&
			   (next = admit_next(gate_index, GOVERNOR_TURN, now)) != GOVERNOR_NOBODY)
			admitted[count++] = next;
		LWLockRelease(governor_gate_lock(gate_index));
		for (int i = 0; i < count; i++)
			wake(admitted[i]);
	} while (count == ADMIT_BATCH && governor_gate_occupancy(gate).queued > 0);
}

/* Lets the next waiter in, if there is a slot for it. */
bool
governor_gate_admit_one(int gate_index)
{
	int			next;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	next = admit_next(gate_index, GOVERNOR_TURN, governor_now_us());
	LWLockRelease(governor_gate_lock(gate_index));
	wake(next);
	return next != GOVERNOR_NOBODY;
}

/* Gives the first waiter an order, and wakes it.  False if nobody queues. */
bool
governor_gate_order_head(int gate_index, GovernorOrder order)
{
	int			head;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	head = governor_queue_first(governor_gate_at(gate_index));
	if (head != GOVERNOR_NOBODY)
		pg_atomic_write_u32(&governor_session_at(head)->order, order);
	LWLockRelease(governor_gate_lock(gate_index));
	wake(head);
	return head != GOVERNOR_NOBODY;
}

/* Lets the next waiter in beyond the limit, but not beyond the ceiling. */
bool
governor_gate_admit_stalled(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			next = GOVERNOR_NOBODY;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	if (!is_at_ceiling(gate))
		next = governor_queue_first(gate);
	if (next != GOVERNOR_NOBODY)
	{
		admit_anyway(gate_index, next, GOVERNOR_BY_STALL);
		gate->stats.stalls++;
	}
	LWLockRelease(governor_gate_lock(gate_index));
	wake(next);
	return next != GOVERNOR_NOBODY;
}

static GovernorOccupancy
unpack(uint64 word)
{
	return (GovernorOccupancy)
	{
		.taken = (uint32) word, .queued = (uint32) (word >> 32)
	};
}

static bool
has_room(GovernorGate *gate, uint32 taken)
{
	uint32		capacity = pg_atomic_read_u32(&gate->capacity);

	return capacity == 0 || taken < capacity;
}

static bool
take_if_room(GovernorGate *gate)
{
	uint64		seen = pg_atomic_read_u64(&gate->occupancy);

	do
	{
		GovernorOccupancy now = unpack(seen);

		if (now.queued > 0 || !has_room(gate, now.taken))
			return false;
	} while (!pg_atomic_compare_exchange_u64(&gate->occupancy, &seen, seen + ONE_TAKEN));
	return true;
}

/*
 * False: a slot was taken.  True: the session is counted as queued, in the same
 * atomic step that saw the gate full, so that no release can miss it.  Waiters
 * of another role are passed: if they could have the slot, they would.
 */
static bool
queue_if_full(GovernorGate *gate, int role)
{
	uint64		seen = pg_atomic_read_u64(&gate->occupancy);
	bool		room;

	do
	{
		GovernorOccupancy now = unpack(seen);
		bool		first = role == GOVERNOR_ROLE_ANY ? now.queued == 0 : gate->role_queued[role] == 0;

		room = first && has_room(gate, now.taken);
	} while (!pg_atomic_compare_exchange_u64(&gate->occupancy, &seen,
											 seen + (room ? ONE_TAKEN : ONE_QUEUED)));
	return !room;
}

static bool
queue_is_full(GovernorGate *gate, int role)
{
	uint32		role_places = pg_atomic_read_u32(&gate->role_places);

	if (governor_max_queue == 0)
		return false;
	return governor_gate_occupancy(gate).queued >= (uint32) governor_max_queue ||
		(role_places > 0 && role != GOVERNOR_ROLE_ANY && gate->role_queued[role] >= role_places);
}

/*
 * Lets the next waiter in, if there is a slot for it.  The role with the fewest
 * slots that work is asked first: if it has its share, every other one has.
 */
static int
admit_next(int gate_index, GovernorReason reason, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			next = governor_queue_first(gate);
	bool		open = pg_atomic_read_u32(&gate->capacity) == 0;
	uint64		flags = 0;
	int			role;

	if (next == GOVERNOR_NOBODY || !has_room(gate, governor_gate_occupancy(gate).taken))
		return GOVERNOR_NOBODY;
	role = set_waiter_state(next, GOVERNOR_ENTERING);
	if (!open && !governor_share_take(gate_index, role, &flags))
	{
		set_waiter_state(next, GOVERNOR_QUEUED);
		return GOVERNOR_NOBODY;
	}
	admit(gate_index, next, open ? GOVERNOR_OPENED : reason, flags, now);
	return next;
}

/* Lets a waiter in beyond all bounds but the caller's. */
static void
admit_anyway(int gate_index, int session, GovernorReason reason)
{
	int			role = set_waiter_state(session, GOVERNOR_ENTERING);

	admit(gate_index, session, reason, governor_share_force(gate_index, role), governor_now_us());
}

/*
 * Before the first counter is changed for a waiter its word says ENTERING.  Returns
 * the waiter's role.
 */
static int
set_waiter_state(int session, GovernorSessionState state)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		seen = pg_atomic_read_u64(word);

	pg_memory_barrier();
	pg_atomic_write_u64(word, governor_word_into(seen, state));
	pg_memory_barrier();
	GOVERNOR_DELAY();
	return governor_word_role(seen);
}

/*
 * From the queue into a slot.  The session's word says ENTERING.  The caller wakes
 * the session.
 */
static void
admit(int gate_index, int session, GovernorReason reason, uint64 flags, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorSession *waiter = governor_session_at(session);
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		entering = pg_atomic_read_u64(word);
	int			role = governor_word_role(entering);
	uint64		wait_us = (uint64) now > waiter->queued_since ? now - waiter->queued_since : 0;

	Assert(governor_word_state(entering) == GOVERNOR_ENTERING);
	governor_queue_remove(gate, session, role);
	pg_atomic_fetch_add_u64(&gate->occupancy, ONE_TAKEN - ONE_QUEUED);
	GOVERNOR_DELAY();
	gate->stats.admits[reason]++;
	governor_queue_count_wait(&gate->stats, wait_us);
	pg_atomic_write_u64(&waiter->waits, pg_atomic_read_u64(&waiter->waits) + 1);
	pg_atomic_write_u64(&waiter->wait_us_total, pg_atomic_read_u64(&waiter->wait_us_total) + wait_us);
	if (wait_us > pg_atomic_read_u64(&waiter->wait_us_max))
		pg_atomic_write_u64(&waiter->wait_us_max, wait_us);
	waiter->since = now;
	waiter->is_long = false;
	pg_write_barrier();
	pg_atomic_write_u64(word, governor_word_next(entering, GOVERNOR_RUNNING, gate_index, role,
												 flags | (entering & GOVERNOR_OBSERVED) |
												 (reason == GOVERNOR_BY_BLOCKING ? GOVERNOR_BLOCKER : 0)));
}

/* Whether a stall lets nobody in now. */
static bool
is_at_ceiling(GovernorGate *gate)
{
	uint32		ceiling = pg_atomic_read_u32(&gate->ceiling);

	return (ceiling > 0 && governor_gate_occupancy(gate).taken >= ceiling) ||
		governor_share_is_at_ceiling();
}

static void
wake(int session)
{
	if (session != GOVERNOR_NOBODY)
		SetLatch(&ProcGlobal->allProcs[session].procLatch);
}
