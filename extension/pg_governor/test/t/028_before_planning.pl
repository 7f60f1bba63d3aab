# What a statement that queues has: no snapshot, and no locks but of what it names; and that it sees what was committed meanwhile.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('planning', <<'EOC');
pg_governor.gate_autocommit = on
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.pools = 'reports(transaction=1, query=1, autocommit=1)'
pg_governor.pool_rules = 'reports(role=public, tag.job=report)'
EOC
my $tag = "/*job='report'*/";
$node->safe_psql('postgres', <<'EOC');
CREATE TABLE things (n int PRIMARY KEY) PARTITION BY RANGE (n);
CREATE TABLE few PARTITION OF things FOR VALUES FROM (0) TO (1000);
CREATE TABLE many PARTITION OF things FOR VALUES FROM (1000) TO (1000000);
CREATE VIEW all_things AS SELECT count(*) AS c FROM things;
CREATE TABLE seen (c bigint);
CREATE ROLE app LOGIN;
GRANT SELECT ON all_things TO app;
CREATE TABLE steps (step int);
CREATE PROCEDURE counted(INOUT c bigint) LANGUAGE plpgsql AS 'BEGIN c := (SELECT * FROM all_things); END';
CREATE PROCEDURE counted_twice(INOUT c bigint) LANGUAGE plpgsql AS
	'BEGIN COMMIT; SELECT t.c INTO c FROM all_things t; COMMIT; ROLLBACK; SELECT t.c INTO c FROM all_things t; END';
CREATE FUNCTION reach(int) RETURNS void LANGUAGE plpgsql AS
	'BEGIN WHILE NOT EXISTS (SELECT FROM steps WHERE step >= $1) LOOP PERFORM pg_sleep(0.01); END LOOP; END';
EOC
my $look = session($node);
$look->ask('SET pg_governor.gate_autocommit = off');
# They have the slots of the pool: of blocks, of queries and of other statements.
my @holders = map { session($node) } 1 .. 3;
my $things = 0;

sub hold
{
	$holders[0]->ask("BEGIN $tag");
	$holders[1]->tell("SELECT pg_sleep(1000) $tag");
	$holders[2]->tell("DO 'BEGIN PERFORM pg_sleep(1000); END' $tag");
	$node->poll_query_until('postgres', "SELECT sum(taken) FROM pg_governor_pools WHERE pool = 'reports'", '3') or die;
}

sub let_go
{
	$holders[0]->ask('COMMIT');
	$holders[$_]->cancel($node) for 1, 2;
}

# xmin, and the relations that are locked, of the one that queues; not every version's planner locks the index of a partitioned table
sub had
{
	my ($where) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) FROM pg_governor_queue WHERE $where", '1') or die "nobody queues: $where";
	return $look->ask(<<"EOC");
SELECT CASE WHEN backend_xmin IS NULL THEN 'no snapshot' ELSE 'a snapshot' END,
	(SELECT string_agg(relation::regclass::text, ' ' ORDER BY relation::regclass::text)
		FROM pg_locks WHERE pg_locks.pid = a.pid AND relation IS NOT NULL AND relation <> 'things_pkey'::regclass)
FROM pg_stat_activity a JOIN pg_governor_queue USING (pid) WHERE $where
EOC
}

my $planned = 'few few_pkey many many_pkey';
# what, what comes before, the statement, what it has while it queues, whether it sees what came meanwhile, what comes before the second time
my @cases = (
	[ 'SELECT', '', "SELECT * FROM all_things $tag", 'no snapshot|all_things things', 1 ],
	[ 'INSERT … RETURNING', '', "INSERT INTO seen SELECT * FROM all_things RETURNING c $tag", 'no snapshot|all_things seen things', 1 ],
	[ 'EXECUTE', 'PREPARE p AS SELECT * FROM all_things', "EXECUTE p $tag", 'no snapshot|', 1 ],
	[ 'EXECUTE of a generic plan', "SET plan_cache_mode = force_generic_plan;\nPREPARE p AS SELECT * FROM all_things;\nEXECUTE p", "EXECUTE p $tag",
		'no snapshot|', 1 ],
	[ 'EXECUTE that inserts', "PREPARE p AS INSERT INTO seen SELECT * FROM all_things RETURNING c $tag", 'EXECUTE p', 'no snapshot|', 1 ],
	[ 'EXECUTE of what is parsed again', "PREPARE p AS SELECT * FROM all_things;\nCREATE OR REPLACE VIEW all_things AS SELECT count(*) AS c FROM things",
		"EXECUTE p $tag", 'no snapshot|all_things things', 1,
		'CREATE OR REPLACE VIEW all_things AS SELECT count(*) AS c FROM things' ],
	[ 'a cursor in a block', 'BEGIN', "DECLARE c CURSOR FOR SELECT * FROM all_things $tag;\nFETCH c;\nCOMMIT", 'no snapshot|all_things things', 1 ],
	[ 'a cursor that is held', '', "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM all_things $tag;\nFETCH c;\nCLOSE c", 'no snapshot|all_things things', 1 ],
	[ 'a block after a savepoint', "BEGIN;\nSAVEPOINT a", "SELECT * FROM all_things $tag;\nCOMMIT", 'no snapshot|all_things things', 1 ],
	[ 'a block in repeatable read', 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SELECT * FROM all_things $tag;\nCOMMIT", 'a snapshot|all_things things', 0 ],
	[ 'COPY', '', "COPY (SELECT * FROM all_things) TO STDOUT $tag", 'no snapshot|', 1 ],
	[ 'CALL', '', "CALL counted(0) $tag", 'no snapshot|', 1 ],
	[ 'CALL that commits', '', "CALL counted_twice(0) $tag", 'no snapshot|', 1 ],
	[ 'DO that commits', '', "DO 'BEGIN COMMIT; INSERT INTO seen SELECT * FROM all_things; COMMIT; END' $tag;\nSELECT max(c) FROM seen", 'no snapshot|', 1 ],
	[ 'CREATE TABLE AS', 'DROP TABLE IF EXISTS made', "CREATE TABLE made AS SELECT * FROM all_things $tag;\nSELECT * FROM made", 'no snapshot|all_things', 1 ],
	[ 'EXPLAIN ANALYZE', "SET enable_seqscan = off", "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) INSERT INTO seen SELECT * FROM all_things $tag;\nSELECT max(c) FROM seen",
		"no snapshot|all_things $planned seen things", 1 ],
	[ 'by the cost of its plan', 'SET pg_governor.big_query_cost = 1000000000', "SELECT * FROM all_things $tag", "no snapshot|all_things $planned things", 1 ],
	[ 'EXECUTE by the cost', "SET pg_governor.big_query_cost = 1000000000;\nPREPARE p AS SELECT * FROM all_things", "EXECUTE p $tag",
		"no snapshot|all_things $planned things", 1, "DEALLOCATE p;\nPREPARE p AS SELECT * FROM all_things" ],
	[ 'a cursor by the cost', 'SET pg_governor.big_query_cost = 1000000000', "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM all_things $tag;\nFETCH c;\nCLOSE c",
		"no snapshot|all_things $planned things", 1 ]);
for my $case (@cases)
{
	my ($what, $before, $sql, $expected, $is_newer, $again) = @$case;
	$again = $before if $before =~ /^BEGIN/;
	my $client = session($node);
	hold();
	# One that is cancelled, and then one that is let in.
	$client->ask($before) if $before ne '';
	$client->tell($sql =~ s/;\n.*//sr);
	is(had("pid = $client->{pid}"), $expected, "$what: what it has while it queues");
	$client->cancel($node);
	$client->ask($again) if defined $again;
	$client->tell($sql);
	is(had("pid = $client->{pid}"), $expected, "$what: after a cancel");
	$node->safe_psql('postgres', "INSERT INTO things VALUES ($things)");
	let_go();
	my ($last) = $client->settle =~ /(\d+)\n?\z/;
	is($last, $things + ($is_newer ? 1 : 0), "$what: what it sees");
	is($client->errors, '', "$what: without an error");
	$client->leave;
	$things++;
}

# By the extended protocol: the second time a statement may have its plan.
my %extended = (
	'a query' => [ "SELECT * FROM all_things WHERE c >= :low $tag", 'all_things' ],
	'an insert' => [ "INSERT INTO seen SELECT * FROM all_things WHERE c >= :low $tag", 'all_things seen' ],
	'an insert that returns' => [ "INSERT INTO seen SELECT * FROM all_things WHERE c >= :low RETURNING c $tag", 'all_things seen' ]);
for my $what (sort keys %extended)
{
	my ($sql, $named) = @{ $extended{$what} };
	for my $case ([ 'extended', 'auto', 'things' ], [ 'prepared', 'force_custom_plan', 'things' ], [ 'prepared', 'force_generic_plan', 'few many things' ])
	{
		my ($protocol, $plans, $locks) = @$case;
		my $script = $node->basedir . '/steps.sql';
		unlink $script;
		append_to_file($script, "$sql;\n\\set n :n + 1\nSELECT reach(:n);\n");
		$node->safe_psql('postgres', 'TRUNCATE seen; TRUNCATE steps');
		local $ENV{PGOPTIONS} = "-c plan_cache_mode=$plans";
		my $client = IPC::Run::start([ 'pgbench', '-n', '-M', $protocol, '-D', 'n=0', '-D', 'low=0', '-t', 2, '-f', $script, $node->connstr('postgres') ],
			'>', \my $out, '2>', \my $err);
		$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT reach%'", '1')
		  or die $client->pump_nb && $err;
		hold();
		$node->safe_psql('postgres', "INSERT INTO steps VALUES (1)");
		my @expected = sort split ' ', "$named $locks";
		is(had("pool = 'reports'"), "no snapshot|@expected", "$what, $protocol, $plans: what it has while it queues");
		$node->safe_psql('postgres', "INSERT INTO things VALUES ($things); INSERT INTO steps VALUES (2)");
		let_go();
		$client->finish;
		is($?, 0, "$what, $protocol, $plans: it ends well") or diag $err;
		$things++;
		is($node->safe_psql('postgres', 'SELECT max(c) FROM seen'), $things, "$what, $protocol, $plans: what it sees") if $named =~ /seen/;
	}
}

# A pause holds a statement without a snapshot, too.
my $client = session($node, user => 'app');
$look->ask("SELECT pg_governor_pause('reports', wait => false)");
$client->tell("SELECT * FROM all_things $tag");
$node->poll_query_until('postgres', "SELECT paused FROM pg_governor_sessions WHERE pid = $client->{pid}") or die;
is($look->ask("SELECT backend_xmin IS NULL, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND relation IS NOT NULL)
	FROM pg_stat_activity a WHERE pid = $client->{pid}"), 't|2', 'a pause holds a statement without a snapshot');
$look->ask("INSERT INTO things VALUES ($things)");
$things++;
# Who may end it is not held, however it says so.
my $boss = session($node);
$boss->ask("SET pg_governor.pool = 'reports';\nPREPARE p AS SELECT pg_governor_resume(\$1)");
is($boss->ask("EXECUTE p('reports')"), '1', 'a prepared call ends the pause');
is($client->settle, $things, 'and it sees what came meanwhile');

$ENV{PGOPTIONS} = $GovernorTest::LOOK;
nothing_left($node, 'planning');
$node->stop;
done_testing();
