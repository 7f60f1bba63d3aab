# The README's commands. Each sets up what it needs, and can be run again.

PGRIG := target/release/pgrig

.PHONY: demo build setup setup-test setup-bench test test-fast smoke check bench extension site dist test-dist fresh soak soak-promote soak-guard soak-shard soak-shard-restores soak-power soak-states soak-crashes soak-planted soak-isolation soak-failover soak-timeline soak-kills soak-hosts soak-same-work soak-statements tail attack clean

# Sets up, builds, proves itself on this machine, runs the main job, and ends with the README's first answer.
demo: setup build
	@$(PGRIG) run pgbench --profile smoke
	@$(PGRIG) run pgbench --profile quick
	@$(PGRIG) compare --b-set synchronous_commit=off -N -c 4 --max-time 1min

setup:
	@scripts/setup demo

# The programs, and below stripped/ the same without symbols, which lie in files beside them: a debugger finds them there.
build:
	@cargo build --release --locked -p pgrig -p pgrig-guard -p pgrig-shard --bins
	@mkdir -p target/release/stripped
	@cd target/release/stripped && for program in pgrig pgrig-guard pgrig-shard; do \
		[ $$program -nt ../$$program ] || { \
			objcopy --only-keep-debug ../$$program $$program.debug && \
			objcopy --strip-all --add-gnu-debuglink=$$program.debug ../$$program $$program; } || exit 1; \
	done

setup-test:
	@scripts/setup test

# Every test, with real PostgreSQL servers and a real browser. What this machine cannot test is
# skipped, and listed at the end.
test: setup-test
	@scripts/test

# Builds pg_governor and installs it into the PostgreSQL of this machine (PG_CONFIG for another one).
extension:
	@scripts/setup extension
	@extension/pg_governor/test/run install

# The tests that need no server of their own, for the loop of a change: what is pure, the engine in virtual
# time, the report's text, and the map of the code.
test-fast:
	@cargo test --workspace --locked --lib --bins --test architecture --test virtual_time --test language --test study \
	    --test records --test html --test text --test verdicts --test histories

# The smoke of every shipped study, also of those that `make test` has no time for.
smoke:
	@PGRIG_TESTS_ALL_SMOKES=1 cargo test --locked -p pgrig --test cli -- smoke::every_shipped_study

# 200 faults of hosts under a healthy database (PGRIG_HOST_SCHEDULES for another number), as root: no claim is
# refuted by them.
soak-hosts:
	@PGRIG_HOST_SCHEDULES=$${PGRIG_HOST_SCHEDULES:-200} cargo test --locked -p pgrig --test hosts -- faults_of_hosts

# Planted causes of slow transactions, each twenty times (PGRIG_TAIL_RUNS): the right one must be named first.
tail:
	@cargo test --locked -p pgrig --test tail -- --ignored --nocapture

# The pages as a site with search, into target/site/book.
site:
	@scripts/site

# The archive and the packages of a release, into dist/.
dist:
	@scripts/setup dist
	@scripts/dist

# Installs and tries them on a fresh Debian; as root.
test-dist: dist
	@scripts/test-dist

# make demo and make test on a fresh Debian 12 and 13, as a plain user with sudo; this one as root.
fresh:
	@scripts/fresh --test

# What a change must pass before anything else: formatting and lints.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

setup-bench:
	@scripts/setup bench

# The generator beside pgbench, interleaved, medians with spread. More than half an hour; a quiet machine.
bench: setup-bench build
	@scripts/bench

# Hours of breaking: each part says what it repeats; nothing acknowledged may be lost in any.
soak: soak-promote soak-guard soak-shard soak-shard-restores soak-power soak-states soak-isolation soak-failover soak-timeline soak-kills \
    soak-same-work

# Kills the primary and promotes its standby, again and again. Each repetition has a seed of its
# own; ROUNDS=500 for more.
ROUNDS = 50
soak-promote: setup build
	@$(PGRIG) run replication --profile smoke --only 'C/primary_dies*' --rounds $(ROUNDS) --gate

# A guarded primary whose synchronous standby dies every ten seconds: at most one change of sync mode
# a minute. Then guards, standbys, links and the primary die at random: no commit is unprotected without a
# record, and none hangs longer than the grace and two seconds. MINUTES=60 for more. Then schedules of single
# faults, locks and edits by a person, some ten seconds each: SCHEDULES=500 for more.
MINUTES = 10
SCHEDULES = 52
soak-guard: setup-test
	@PGRIG_SOAK_MINUTES=$(MINUTES) PGRIG_SOAK_SCHEDULES=$(SCHEDULES) cargo test --locked -p pgrig --test guard -- --ignored --nocapture --test-threads 1

# Nodes added and removed under load, while the tool, a node or the proxy is killed, until so many
# rows are acknowledged and twenty batches of buckets have moved; ROWS=100000 for less.
ROWS = 1000000
soak-shard: setup-test
	@PGRIG_SOAK_ROWS=$(ROWS) cargo test --locked -p pgrig --test soak -- --ignored --nocapture

# A node or the proxy restored to a random moment of a move, the tool killed at another: no row is lost or
# counted twice, and nothing is unserved without a message; SCHEDULES=100 for less.
SCHEDULES = 1000
soak-shard-restores: setup-test
	@PGRIG_SHARD_SCHEDULES=$(SCHEDULES) cargo test --locked -p shard --test cluster -- --ignored --nocapture

# Power cuts by the hundred, and the rig killed at any moment; as root.
soak-power: setup build
	@PGRIG_KILLS=100 cargo test --locked -p lab --test power
	@$(PGRIG) run fsync --profile full --only '*/cut_*' --gate

# What clients read, checked through kill -9 and power cuts, with the controls; the transactions add up over
# the rounds. As root.
soak-isolation: setup build
	@$(PGRIG) run isolation --profile full --rounds $(ROUNDS) --gate \
	    --only '*/kill_*|cut_*/power_cut|rc/read_committed|*/planted_*|delayed/*|pair/stale_paused'

# States of power cuts by the thousand, each recovered and looked through; as root. About two hours;
# STATES=100000 for a night. What was interrupted goes on where it stopped, and the sum of all states is
# printed at each end; one that is finished prints its sum again.
STATES = 10000
SOAKED = runs/soak-states-$(STATES)
soak-states: setup build
	@if [ ! -d $(SOAKED) ]; then \
		$(PGRIG) run fsync --profile full --only log_safe/explore --rounds $$(( ($(STATES) + 1249) / 1250 )) \
			--out $(SOAKED) --gate; \
	elif $(PGRIG) run --resume $(SOAKED) --dry-run 2>&1 | grep -q 'is finished'; then \
		$(PGRIG) show $(SOAKED); \
	else \
		$(PGRIG) run --resume $(SOAKED) --gate; \
	fi

# The same of a load that writes every kind of file, on each file system and size of sectors in turn: LOADS loads of
# 600 states. Each adds a line to docs/measurements/states.tsv, and the next run goes on behind the last. As root.
LOADS = 6
soak-crashes: setup build
	@PGRIG=$(PGRIG) scripts/crashes $(LOADS)

# Faults that are planted in a server's flushes: which of them does an exploration find? PLANTED_STATES=1000 for more. As root.
PLANTED_STATES = 150
soak-planted: setup build
	@PGRIG=$(PGRIG) scripts/planted $(PLANTED_STATES)

# The worst faults of a manager of high availability, again and again; each repetition has a seed of its own.
# What was interrupted goes on where it stopped; one that is finished is shown. As root.
FAILOVERS = runs/soak-failover-$(ROUNDS)
soak-failover: setup build
	@if [ ! -d $(FAILOVERS) ]; then \
		$(PGRIG) run failover --profile quick --rounds $(ROUNDS) --out $(FAILOVERS) --gate \
			--only '*/machine_killed|*/lagging_standby|*/order_of_return|async/manager_paused'; \
	elif $(PGRIG) run --resume $(FAILOVERS) --dry-run 2>&1 | grep -q 'is finished'; then \
		$(PGRIG) show $(FAILOVERS); \
	else \
		$(PGRIG) run --resume $(FAILOVERS) --gate; \
	fi

# Actions of every kind while each node stands still: none may be late and not named.
TIMELINES = 1
soak-timeline: setup-test
	@PGRIG_TIMELINE_ROUNDS=$(TIMELINES) cargo test --locked -p study --test run timeline::no_action -- --ignored --nocapture

# The rig alone, or all processes of a study in one moment, killed KILLS times; nothing may be left. STUDY is
# one of fsync, replication and failover, or all by turns. As root.
KILLS = 50
STUDY =
soak-kills: setup-test
	@PGRIG_KILLS=$(KILLS) PGRIG_KILLS_OF=$(STUDY) cargo test --locked -p pgrig --test kills -- --ignored --nocapture

# Eight workloads compared with themselves, each RUNS times: how often is a side said to do something else?
RUNS = 25
soak-same-work: setup build
	@PGRIG=$(PGRIG) scripts/same-work $(RUNS)

# Two hundred statements of which ten are changed on side B, DRAWS times: how many are found, and how many others have a
# wrong verdict? PGRIG_B_BIN names the programs of another version for side B.
DRAWS = 6
soak-statements: setup-test
	@PGRIG_STATEMENTS_DRAWS=$(DRAWS) cargo test --locked -p pgrig --test cli planted_statements -- --ignored --nocapture

# Servers broken in the middle of real runs, at seeded moments: no gate may be green, then or after
# --resume. As root. Each attack is written down, and a campaign goes on where it stopped; ATTACKS=500
# for more.
ATTACKS = 200
attack: setup-test
	@PGRIG_ATTACKS=$(ATTACKS) cargo test --locked -p pgrig --test attack no_attack -- --ignored --nocapture

clean:
	cargo clean
	rm -rf dist
