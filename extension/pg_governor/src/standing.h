/*
 * standing.h
 *		What a process is to the governor.
 */
#ifndef GOVERNOR_STANDING_H
#define GOVERNOR_STANDING_H

typedef enum GovernorStanding
{
	GOVERNOR_UNKNOWN,
	GOVERNOR_EXEMPT,			/* never takes a slot */
	GOVERNOR_GOVERNED,
	GOVERNOR_PRIVILEGED,		/* governed, with reserved slots */
} GovernorStanding;

extern GovernorStanding governor_find_standing(Oid session_user);

#endif							/* GOVERNOR_STANDING_H */
