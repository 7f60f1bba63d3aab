/*
 * block.h
 *		Lets those in who queue with a lock that others wait for.
 */
#ifndef GOVERNOR_BLOCK_H
#define GOVERNOR_BLOCK_H

extern void governor_block_start(void);
extern void governor_block_look(void);
extern bool governor_block_keeps_others(void);

#endif							/* GOVERNOR_BLOCK_H */
