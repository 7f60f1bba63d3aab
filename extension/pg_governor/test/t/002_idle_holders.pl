# Holders that do not use the CPU must not block everybody, with the defaults but without a timeout of the queue.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = governed_node('idle', <<'EOC', allows_streaming => 1);
pg_governor.transaction_limit = 2
pg_governor.query_limit = 2
pg_governor.queue_timeout = 0
EOC
my $connection = $node->connstr('postgres') . ' user=plain';
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE TABLE things (n int);
	INSERT INTO things VALUES (1); GRANT ALL ON things TO plain');

sub transact
{
	my ($sql) = @_;
	$node->safe_psql('postgres', $sql // "BEGIN;\nSELECT 1;\nCOMMIT", connstr => $connection,
		timeout => $PostgreSQL::Test::Utils::timeout_default);
}

# A transaction of somebody else comes through; no timeout would let it in.
sub flows
{
	my ($name, $sql) = @_;
	my $began = time;
	transact($sql);
	pass(sprintf('%s: through after %.2f s', $name, time - $began));
}

my @holders = map { holder($node) } 1 .. 2;
flows('idle in transaction');
flows('and again');
$_->tell('SELECT pg_sleep(1000)') for @holders;
# the slots that were there for idle ones are gone by then
usleep(500_000);
flows('as many pg_sleep(1000) as slots');
ok($node->poll_query_until('postgres',
		'SELECT count(*) FROM pg_governor_sessions WHERE discounted', '2'), 'they are discounted');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @holders;
$_->ask('ROLLBACK') for @holders;

# waiting for a lock of a session that has no slot
my $locker = session($node);
$locker->ask('SET pg_governor.gate_begin = off; BEGIN; LOCK TABLE things');
$_->ask('BEGIN') for @holders;
$_->tell('UPDATE things SET n = n + 1') for @holders;
flows('lock waits');
$locker->ask('ROLLBACK');
$_->tell('COMMIT') for @holders;
$_->settle for @holders;

# busy holders
$_->ask('BEGIN') for @holders;
$_->tell('DO $$BEGIN LOOP NULL; END LOOP; END$$') for @holders;
flows('busy loops');
flows('again');
# On a busy machine the stall rule may let in who waits before they have worked enough: somebody has to wait again.
my $became_long = "SELECT became_long > 0 FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'";
my $latest = time + $PostgreSQL::Test::Utils::timeout_default;
transact() while time < $latest && $node->safe_psql('postgres', $became_long) ne 't';
is($node->safe_psql('postgres', $became_long), 't', 'they become long, and keep nobody out');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @holders;
$_->ask('ROLLBACK') for @holders;
nothing_left($node, 'idle holders');

# separate pools do not know each other, even without any of these rules
$node->append_conf('postgresql.conf', <<'EOC');
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.pools = 'interactive()'
EOC
reload_all($node);
$node->safe_psql('postgres', "ALTER ROLE plain SET pg_governor.pool = 'interactive'");
$_->ask('BEGIN') for @holders;
$_->tell('SELECT pg_sleep(1000)') for @holders;
flows('another pool');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @holders;
$_->ask('ROLLBACK') for @holders;

# all synchronous standbys are dead
$node->safe_psql('postgres', 'ALTER ROLE plain RESET pg_governor.pool');
$_->leave for @holders;
$node->append_conf('postgresql.conf', <<'EOC');
pg_governor.discount_time = 100
synchronous_standby_names = 'nobody'
EOC
$node->restart;
wait_for_monitor($node);
@holders = map { session($node) } 1 .. 2;
for my $holder (@holders)
{
	$holder->tell("BEGIN;\nINSERT INTO things VALUES (2);\nCOMMIT");
}
$node->poll_query_until('postgres',
	"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", '2') or die;
for my $level (qw(local off))
{
	flows("no standby: a transaction with $level", 
		"SET synchronous_commit = $level;\nBEGIN;\nINSERT INTO things VALUES (3);\nCOMMIT");
}
$node->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @holders;
$_->settle for @holders;
nothing_left($node, 'synchronous standby');

# connections from this server to itself: the slot's owner waits for them
$node->append_conf('postgresql.conf', <<'EOC');
synchronous_standby_names = ''
pg_governor.transaction_limit = 1
pg_governor.autocommit_limit = 1
pg_governor.query_limit = 1
pg_governor.gate_autocommit = on
EOC
reload_all($node);
{
	my $known = $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name IN ('dblink', 'postgres_fdw')");
	die "dblink and postgres_fdw (contrib) are needed for this test" if $known != 2;
	my ($host, $port) = ($node->host, $node->port);
	$node->safe_psql('postgres', <<"EOC");
CREATE EXTENSION dblink;
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER self;
CREATE FOREIGN TABLE far_things (n int) SERVER self OPTIONS (table_name 'things');
EOC
	my $own = $node->connstr('postgres') =~ s/'/''/gr;
	$node->safe_psql('postgres',
		"BEGIN;\nSELECT * FROM dblink('$own', 'SELECT count(*) FROM things') AS t(n bigint);\nCOMMIT");
	$node->safe_psql('postgres', "SELECT * FROM dblink('$own', 'SELECT 1') AS t(n int)");
	$node->safe_psql('postgres', "BEGIN;\nSELECT count(*) FROM far_things;\nCOMMIT");
	$node->safe_psql('postgres', "UPDATE far_things SET n = n + 1");
	pass('dblink and postgres_fdw to the same server');
}
$ENV{PGOPTIONS} = '-c pg_governor.gate_autocommit=off';
nothing_left($node, 'loopback');

$node->stop;
done_testing();
