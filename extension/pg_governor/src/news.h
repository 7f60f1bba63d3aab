/*
 * news.h
 *		Lines for the server's log that may come often, and must not fill it.
 */
#ifndef GOVERNOR_NEWS_H
#define GOVERNOR_NEWS_H

#include "state.h"

extern bool governor_news_due(GovernorNews kind, uint64 *held_back);
extern int	governor_news_detail(uint64 held_back);

#endif							/* GOVERNOR_NEWS_H */
