/*
 * word.h
 *		A session's state in one atomic word: what it does, at which gate, in
 *		which counters it is counted, and how often the word has changed.
 *
 * Bits: 0–2 state, 3–7 flags, 8–15 role, 16–31 gate + 1, 32–63 generation.
 */
#ifndef GOVERNOR_WORD_H
#define GOVERNOR_WORD_H

#include "state.h"

typedef enum GovernorSessionState
{
	GOVERNOR_IDLE,				/* has no slot and wants none */
	GOVERNOR_ENTERING,			/* a counter is being raised for it */
	GOVERNOR_QUEUED,			/* is in the queue of its gate */
	GOVERNOR_RUNNING,			/* has a slot and works */
	GOVERNOR_WARM,				/* keeps its slot for its next transaction */
	GOVERNOR_RESERVED,			/* works in a reserved slot */
	GOVERNOR_LEAVING,			/* a counter is being lowered for it */
} GovernorSessionState;

/* Bounds of what has to fit. */
#define GOVERNOR_MAX_POOLS 1000

StaticAssertDecl(GOVERNOR_MAX_POOLS * GOVERNOR_CLASSES < 0xFFFF, "a gate fits into a word");
StaticAssertDecl(GOVERNOR_ROLES <= 32, "the roles of a gate fit into a bit map");

/* counted in GovernorShared.total_taken */
#define GOVERNOR_COUNTED UINT64CONST(0x08)
/* counted in GovernorGate.role_taken */
#define GOVERNOR_ROLED UINT64CONST(0x10)
/* does not sleep in the queue: it runs, and only would have to wait */
#define GOVERNOR_OBSERVED UINT64CONST(0x20)
/* may hold locks while it queues, for which others may wait */
#define GOVERNOR_HOLDING UINT64CONST(0x40)
/* was let in since somebody waits for its locks */
#define GOVERNOR_BLOCKER UINT64CONST(0x80)
#define GOVERNOR_FLAGS \
	(GOVERNOR_COUNTED | GOVERNOR_ROLED | GOVERNOR_OBSERVED | GOVERNOR_HOLDING | GOVERNOR_BLOCKER)

static inline pg_atomic_uint64 *
governor_word_at(int session)
{
	return &governor->words[session];
}

static inline GovernorSessionState
governor_word_state(uint64 word)
{
	return (GovernorSessionState) (word & 7);
}

static inline int
governor_word_gate(uint64 word)
{
	return (int) ((word >> 16) & 0xFFFF) - 1;
}

static inline int
governor_word_role(uint64 word)
{
	return (int) ((word >> 8) & 0xFF);
}

static inline uint64
governor_word_flags(uint64 word)
{
	return word & GOVERNOR_FLAGS;
}

/* Of two words of a session another one if it has changed in between. */
static inline uint32
governor_word_generation(uint64 word)
{
	return (uint32) (word >> 32);
}

/* The word that follows another one. */
static inline uint64
governor_word_next(uint64 word, GovernorSessionState state, int gate, int role, uint64 flags)
{
	return ((word >> 32) + 1) << 32 | (uint64) (gate + 1) << 16 | (uint64) role << 8 | flags | state;
}

/* The same, with only the state changed. */
static inline uint64
governor_word_into(uint64 word, GovernorSessionState state)
{
	return governor_word_next(word, state, governor_word_gate(word), governor_word_role(word),
							  governor_word_flags(word));
}

static inline GovernorSessionState
governor_state_of(int session)
{
	return governor_word_state(pg_atomic_read_u64(governor_word_at(session)));
}

#endif							/* GOVERNOR_WORD_H */
