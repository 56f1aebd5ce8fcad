-- Format 3 of the journal: nodes, and what there is to do for them.
UPDATE longhaul.format SET format = 3 WHERE application = 'longhaul journal';

-- A home with its processes. Times are on the clock of the database.
CREATE TABLE longhaul.node (
    id         text COLLATE "C" PRIMARY KEY,
    place      text NOT NULL,                -- tells two homes with one id apart: the boot, and the home's device and inode
    home       text NOT NULL,
    process    bigint NOT NULL REFERENCES longhaul.holder,
    hosts      boolean NOT NULL,             -- false: shut down
    seen       bigint NOT NULL,
    dead_after bigint NOT NULL,
    address    text,
    version    text NOT NULL,
    hears      boolean NOT NULL,             -- notifications reach it
    ahead      bigint NOT NULL,              -- its clock minus the database's
    draining   boolean NOT NULL DEFAULT false,
    gone       boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

ALTER TABLE longhaul.holder ADD COLUMN node text COLLATE "C", ADD COLUMN boot text COLLATE "C";
UPDATE longhaul.holder SET boot = process::json ->> 'boot';

-- The node that a session is bound to. Placed without a node: any node may run it.
ALTER TABLE longhaul.session ADD COLUMN placed boolean NOT NULL DEFAULT false, ADD COLUMN node text COLLATE "C";
CREATE INDEX session_node ON longhaul.session (node) WHERE node IS NOT NULL;

-- Sessions that may have something to do: a hint, but one that is only removed when a node has found the session at rest and the
-- mark is still the same. Every session with a holder is in it.
CREATE TABLE longhaul.due (
    session text COLLATE "C" PRIMARY KEY,
    mark    bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO longhaul.due SELECT substr(name, 9), 1 FROM longhaul.stream WHERE starts_with(name, 'session/')
UNION SELECT substr(name, 7), 1 FROM longhaul.stream WHERE starts_with(name, 'inbox/');

-- The update locks the row: a node that removes it at the same time waits, and then sees another mark.
CREATE FUNCTION longhaul.mark_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO longhaul.due AS known (session, mark) VALUES (split_part(NEW.name, '/', 2), 1)
    ON CONFLICT (session) DO UPDATE SET mark = known.mark + 1;
    RETURN NULL;
END $$;
CREATE FUNCTION longhaul.forget_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM longhaul.due WHERE session = split_part(OLD.name, '/', 2);
    RETURN NULL;
END $$;
-- An append to an inbox.
CREATE TRIGGER inbox_moved AFTER UPDATE OF head ON longhaul.stream FOR EACH ROW
    WHEN (starts_with(NEW.name, 'inbox/')) EXECUTE FUNCTION longhaul.mark_due();
-- A process takes the lease of a session.
CREATE TRIGGER session_taken AFTER UPDATE OF token ON longhaul.stream FOR EACH ROW
    WHEN (starts_with(NEW.name, 'session/')) EXECUTE FUNCTION longhaul.mark_due();
CREATE TRIGGER session_removed AFTER DELETE ON longhaul.stream FOR EACH ROW
    WHEN (starts_with(OLD.name, 'session/')) EXECUTE FUNCTION longhaul.forget_due();

CREATE OR REPLACE FUNCTION longhaul.apply_name_change(change text, session_id text, session_key text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    CASE change
        WHEN 'bind' THEN
            INSERT INTO longhaul.session (id, key, trashed, pinned) VALUES (session_id, session_key, false, false)
            ON CONFLICT DO NOTHING;
        WHEN 'rename' THEN
            UPDATE longhaul.session SET key = session_key
            WHERE id = session_id AND NOT EXISTS (SELECT 1 FROM longhaul.session WHERE key = session_key);
        WHEN 'trash' THEN UPDATE longhaul.session SET trashed = true WHERE id = session_id;
        WHEN 'restore' THEN UPDATE longhaul.session SET trashed = false WHERE id = session_id;
        WHEN 'pin' THEN UPDATE longhaul.session SET pinned = true WHERE id = session_id;
        WHEN 'unpin' THEN UPDATE longhaul.session SET pinned = false WHERE id = session_id;
        WHEN 'forget' THEN DELETE FROM longhaul.session WHERE id = session_id;
        -- The key is the node here.
        WHEN 'place' THEN UPDATE longhaul.session SET placed = true, node = session_key WHERE id = session_id;
    END CASE;
END $$;

-- Whether a node runs sessions, as far as the others can see.
CREATE FUNCTION longhaul.is_live(node longhaul.node) RETURNS boolean LANGUAGE sql AS
    $$ SELECT node.hosts AND NOT node.gone AND node.seen + node.dead_after > longhaul.now_ms() $$;

-- Whether a node leaves sessions that are bound to no node to others.
CREATE FUNCTION longhaul.hands_over(node_id text) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT 1 FROM longhaul.node WHERE id = node_id AND draining)
        AND EXISTS (SELECT 1 FROM longhaul.node WHERE id <> node_id AND NOT draining AND longhaul.is_live(node))
$$;

-- A sign of life of a node, or its entry into the list. status: done, in_use (another home has this id, and was heard of). Heartbeats
-- don't wait for the disk: after a crash of the server the next one is there soon enough.
CREATE FUNCTION longhaul.heartbeat(
    node_id text, node_place text, node_home text, node_process bigint, node_address text, node_version text,
    node_dead_after bigint, node_hears boolean, node_clock bigint, gone_after bigint,
    OUT status text, OUT clock bigint, OUT is_draining boolean,
    OUT other_process text, OUT other_home text, OUT other_seen bigint
) LANGUAGE plpgsql AS $$
DECLARE
    other longhaul.node;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    clock := longhaul.now_ms();
    status := 'done';
    UPDATE longhaul.node SET
        place = node_place, home = node_home, process = node_process, hosts = true, seen = clock,
        dead_after = node_dead_after, address = node_address, version = node_version, hears = node_hears,
        ahead = node_clock - clock, gone = false
    WHERE id = node_id AND (place = node_place OR NOT hosts OR seen + dead_after <= clock)
    RETURNING draining INTO is_draining;
    IF NOT FOUND THEN
        INSERT INTO longhaul.node (id, place, home, process, hosts, seen, dead_after, address, version, hears, ahead)
        VALUES (node_id, node_place, node_home, node_process, true, clock, node_dead_after, node_address, node_version,
            node_hears, node_clock - clock)
        ON CONFLICT DO NOTHING;
        is_draining := false;
        IF NOT FOUND THEN
            SELECT * INTO other FROM longhaul.node WHERE id = node_id;
            status := 'in_use';
            other_process := longhaul.process_of(other.process);
            other_home := other.home;
            other_seen := other.seen;
        END IF;
    END IF;
    IF gone_after > 0 THEN
        UPDATE longhaul.node SET gone = true WHERE NOT gone AND seen + greatest(gone_after, dead_after) <= clock;
    END IF;
END $$;
