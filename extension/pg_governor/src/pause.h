/*
 * pause.h
 *		Pools and databases whose sessions begin nothing new for now.
 */
#ifndef GOVERNOR_PAUSE_H
#define GOVERNOR_PAUSE_H

#include "snapshots.h"
#include "state.h"

extern bool governor_pause_is_any(void);
extern void governor_pause_wait(GovernorSnapshots *snapshots);

#endif							/* GOVERNOR_PAUSE_H */
