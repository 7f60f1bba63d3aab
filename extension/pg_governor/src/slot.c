/*
 * slot.c
 *		Changes of a session's word, and what goes with each.
 *
 * The monitor changes words of other sessions.  So a session leaves WARM and
 * RUNNING only by an exchange or a compare-and-swap, and what is released is what
 * the word that was taken away says, not what somebody has read before.
 *
 * Like gate.c, it needs no server.
 */
#include "compat.h"

#include "clock.h"
#include "delay.h"
#include "gate.h"
#include "slot.h"
#include "word.h"

static void begin_work(int session, int64 now);
static void release_by(int session, uint64 word);

/* The session's word says IDLE before. */
GovernorEntry
governor_slot_take(int session, int gate, int role)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		entering;
	uint64		flags = 0;

	if (pg_atomic_read_u32(&governor_gate_at(gate)->capacity) == 0)
		return GOVERNOR_OPEN;
	entering = governor_word_next(pg_atomic_read_u64(word), GOVERNOR_ENTERING, gate, role, 0);
	pg_atomic_write_u64(word, entering);
	GOVERNOR_DELAY();
	/* The compare-and-swap inside is a barrier on both sides. */
	if (!governor_gate_take(gate, role, &flags))
	{
		pg_atomic_write_u64(word, governor_word_next(entering, GOVERNOR_IDLE, GOVERNOR_NOBODY, 0, 0));
		return GOVERNOR_FULL;
	}
	GOVERNOR_DELAY();
	begin_work(session, governor_tick_us());
	pg_atomic_write_u64(word, governor_word_next(entering, GOVERNOR_RUNNING, gate, role, flags));
	return GOVERNOR_ENTERED;
}

/* One of the slots beyond every limit; there are so many of them. */
bool
governor_slot_take_reserved(int session, int gate, uint32 slots)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		entering;
	uint32		taken = pg_atomic_read_u32(&governor->reserved_taken);
	bool		room;

	entering = governor_word_next(pg_atomic_read_u64(word), GOVERNOR_ENTERING, gate, 0, 0);
	pg_atomic_write_u64(word, entering);
	do
		room = taken < slots;
	while (room && !pg_atomic_compare_exchange_u32(&governor->reserved_taken, &taken, taken + 1));
	GOVERNOR_DELAY();
	begin_work(session, governor_tick_us());
	pg_atomic_write_u64(word, room ?
						governor_word_next(entering, GOVERNOR_RESERVED, gate, 0, 0) :
						governor_word_next(entering, GOVERNOR_IDLE, GOVERNOR_NOBODY, 0, 0));
	return room;
}

/* For a session that cannot queue any more: it counts, whatever the limit. */
void
governor_slot_book(int session, int gate, int role)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		entering = governor_word_next(pg_atomic_read_u64(word), GOVERNOR_ENTERING, gate, role, 0);
	uint64		flags;

	pg_atomic_write_u64(word, entering);
	pg_memory_barrier();
	GOVERNOR_DELAY();
	flags = governor_gate_take_anyway(gate, role);
	begin_work(session, governor_tick_us());
	pg_atomic_write_u64(word, governor_word_next(entering, GOVERNOR_RUNNING, gate, role, flags));
}

/* False if the session has no slot to keep, or the monitor has just moved it. */
bool
governor_slot_keep_warm(int session)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		seen = pg_atomic_read_u64(word);

	begin_work(session, governor_now_us());
	return governor_word_state(seen) == GOVERNOR_RUNNING &&
		pg_atomic_compare_exchange_u64(word, &seen, governor_word_into(seen, GOVERNOR_WARM));
}

/* True: the session runs again with the slot that it had kept. */
bool
governor_slot_resume(int session)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		seen = pg_atomic_read_u64(word);

	if (governor_word_state(seen) != GOVERNOR_WARM)
		return false;
	begin_work(session, governor_now_us());
	GOVERNOR_DELAY();
	return pg_atomic_compare_exchange_u64(word, &seen, governor_word_into(seen, GOVERNOR_RUNNING));
}

/* Releases whatever the session has. */
void
governor_slot_release(int session)
{
	pg_atomic_uint64 *word = governor_word_at(session);
	uint64		seen = pg_atomic_read_u64(word);

	for (;;)
	{
		switch (governor_word_state(seen))
		{
			case GOVERNOR_RUNNING:
			case GOVERNOR_WARM:
			case GOVERNOR_RESERVED:
				break;
			default:
				return;
		}
		if (pg_atomic_compare_exchange_u64(word, &seen, governor_word_into(seen, GOVERNOR_LEAVING)))
			break;
	}
	release_by(session, seen);
}

/*
 * Leaves the queue, or releases the slot that it has by now.  ENTERING says that
 * somebody lets it in at this moment, under the gate's lock.
 */
void
governor_slot_end(int session, GovernorLeave how)
{
	GovernorSessionState state = governor_state_of(session);

	if ((state == GOVERNOR_QUEUED || state == GOVERNOR_ENTERING) && governor_gate_leave(session, how))
		return;
	governor_slot_release(session);
}

/* Takes the slot of a session that stays away.  False if it has come back. */
bool
governor_slot_take_back(int session, uint64 seen)
{
	uint64		expected = seen;

	Assert(governor_word_state(seen) == GOVERNOR_WARM);
	GOVERNOR_DELAY();
	if (!pg_atomic_compare_exchange_u64(governor_word_at(session), &expected,
										governor_word_next(seen, GOVERNOR_IDLE, GOVERNOR_NOBODY, 0, 0)))
		return false;
	GOVERNOR_DELAY();
	governor_gate_release(governor_word_gate(seen), governor_word_role(seen),
						  governor_word_flags(seen));
	return true;
}

/*
 * What the monitor reads once the word says that the session has a slot.  Of one that has not queued, looks that are ten
 * milliseconds apart want to know no more than the time of a tick.
 */
static void
begin_work(int session, int64 now)
{
	governor_session_at(session)->since = now;
	governor_session_at(session)->is_long = false;
	pg_write_barrier();
}

/* The session's word says LEAVING, and was this before. */
static void
release_by(int session, uint64 word)
{
	pg_atomic_uint64 *at = governor_word_at(session);

	GOVERNOR_DELAY();
	if (governor_word_state(word) == GOVERNOR_RESERVED)
		pg_atomic_fetch_sub_u32(&governor->reserved_taken, 1);
	else
		governor_gate_release(governor_word_gate(word), governor_word_role(word),
							  governor_word_flags(word));
	GOVERNOR_DELAY();
	pg_write_barrier();
	pg_atomic_write_u64(at, governor_word_next(pg_atomic_read_u64(at), GOVERNOR_IDLE,
											   GOVERNOR_NOBODY, 0, 0));
}
