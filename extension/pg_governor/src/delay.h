/*
 * delay.h
 *		Points between two atomic steps.  Builds for tests delay there at random,
 *		so that other processes come in between; others contain nothing.
 */
#ifndef GOVERNOR_DELAY_H
#define GOVERNOR_DELAY_H

#ifdef GOVERNOR_DELAYS
extern void governor_delay(void);
#define GOVERNOR_DELAY() governor_delay()
#else
#define GOVERNOR_DELAY() ((void) 0)
#endif

#endif							/* GOVERNOR_DELAY_H */
