-- Format 1 of the journal. Formats only grow: a change is a new file with the next number.
CREATE SCHEMA longhaul;

-- Identifies the journal.
CREATE TABLE longhaul.format (
    application text NOT NULL,
    format      integer NOT NULL
);
INSERT INTO longhaul.format VALUES ('longhaul journal', 1);

-- The processes that hold or held leases.
CREATE TABLE longhaul.holder (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    process text COLLATE "C" NOT NULL UNIQUE     -- JSON
);

-- One row for each stream. Its lock orders the appends to that stream. Appends change no indexed column, and a page
-- has room for the new version of a row, so that they stay on it.
CREATE TABLE longhaul.stream (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,   -- a number is never used again
    name       text COLLATE "C" NOT NULL UNIQUE,
    head       bigint NOT NULL DEFAULT 0,
    hash       bytea  NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    last_at    bigint,
    epoch      bigint,                           -- the newest record of kind epoch_started
    token      bigint,                           -- null: never leased
    holder     bigint REFERENCES longhaul.holder,-- null: free
    expires_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60);

CREATE TABLE longhaul.record (
    stream bigint NOT NULL,
    seq    bigint NOT NULL,
    at     bigint NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    key    bytea,                                -- the hash of a key that is unique in the stream
    prev   bytea NOT NULL,
    hash   bytea NOT NULL,
    gone   bytea,                                -- what stands where a body was: a checksum, then JSON
    body   text COLLATE "C",
    PRIMARY KEY (stream, seq)
) PARTITION BY HASH (stream);

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE longhaul.record_%s PARTITION OF longhaul.record FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, part);
    END LOOP;
END $$;

CREATE UNIQUE INDEX record_key ON longhaul.record (stream, key) WHERE key IS NOT NULL;
CREATE INDEX record_epoch ON longhaul.record (stream, seq) WHERE kind = 'epoch_started';

CREATE TABLE longhaul.blob (
    hash  bytea PRIMARY KEY,
    bytes bytea                                  -- null: lost to damage
);
CREATE TABLE longhaul.blob_use (                 -- made from the bodies
    blob   bytea NOT NULL,
    stream bigint NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (blob, stream, seq)
);
CREATE INDEX blob_use_record ON longhaul.blob_use (stream, seq);

CREATE TABLE longhaul.session (                  -- made from the stream `names`
    id      text COLLATE "C" PRIMARY KEY,
    key     text COLLATE "C" NOT NULL UNIQUE,
    trashed boolean NOT NULL,
    pinned  boolean NOT NULL
);

-- What was erased or removed, for the search indexes of other machines. Writers lock the table, so that a number that
-- is committed later is higher.
CREATE TABLE longhaul.erasure (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream text COLLATE "C" NOT NULL
);

-- Milliseconds since 1970. The clock of the database is the only one that leases know.
CREATE FUNCTION longhaul.now_ms() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- The process that holds a lease, as JSON.
CREATE FUNCTION longhaul.process_of(id bigint) RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT process FROM longhaul.holder WHERE holder.id = $1 $$;

-- An acknowledged append is on the disk, whatever the default of the database or the role is.
CREATE FUNCTION longhaul.require_durability() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- Appends records that were computed for a given head, if the stream still has that head and the lease permits it. The
-- condition and the change are one UPDATE, so that a writer that was replaced can't come in between.
--
-- status: done, moved (another head), fenced, duplicate (found_seq has the first record with the key). A blob that is
-- referred to and missing is the error LH001.
CREATE FUNCTION longhaul.append(
    stream_name text, expected_head bigint, expected_hash bytea, lease_token bigint, lease_ms bigint,
    ats bigint[], kinds text[], keys bytea[], prevs bytea[], hashes bytea[], gones bytea[], bodies text[],
    has_keys boolean, newest_epoch bigint,
    blob_hashes bytea[], blobs bytea[], use_seqs bigint[], use_blobs bytea[], lost_blobs_count boolean,
    name_changes text[], name_ids text[], name_keys text[],
    OUT status text, OUT found_seq bigint, OUT found_hash bytea, OUT found_holder text, OUT clock bigint
) LANGUAGE plpgsql AS $$
DECLARE
    added   integer := coalesce(array_length(hashes, 1), 0);
    number  bigint;
    current longhaul.stream;
    missing bytea;
BEGIN
    -- As require_durability, without a call: this runs for every append.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    LOOP
        clock := longhaul.now_ms();
        found_seq := NULL;
        IF has_keys THEN
            -- A key that is committed after this moves the head, and the UPDATE finds nothing.
            SELECT min(record.seq) INTO found_seq
            FROM longhaul.stream JOIN longhaul.record ON record.stream = stream.id
            WHERE stream.name = stream_name AND record.key = ANY (keys);
        END IF;
        IF found_seq IS NULL THEN
            UPDATE longhaul.stream SET
                head = head + added,
                hash = coalesce(hashes[added], hash),
                last_at = coalesce(ats[added], last_at),
                epoch = coalesce(newest_epoch, epoch),
                expires_at = CASE
                    WHEN lease_token IS NOT NULL AND clock + lease_ms - expires_at >= lease_ms / 4 THEN clock + lease_ms
                    ELSE expires_at END
            WHERE name = stream_name AND hash = expected_hash AND head = expected_head
                AND CASE
                    WHEN lease_token IS NULL THEN holder IS NULL OR expires_at <= clock
                    ELSE token = lease_token AND holder IS NOT NULL END
            RETURNING id INTO number;
            EXIT WHEN FOUND;
        END IF;
        SELECT * INTO current FROM longhaul.stream WHERE name = stream_name;
        IF NOT FOUND THEN
            IF lease_token IS NOT NULL THEN
                status := 'fenced';
                RETURN;
            ELSIF expected_head <> 0 THEN
                status := 'moved';
                found_seq := 0;
                found_hash := decode(repeat('00', 32), 'hex');
                RETURN;
            END IF;
            INSERT INTO longhaul.stream (name) VALUES (stream_name) ON CONFLICT DO NOTHING;
        ELSIF lease_token IS NULL AND current.holder IS NOT NULL AND current.expires_at > clock
            OR lease_token IS NOT NULL AND (current.token IS DISTINCT FROM lease_token OR current.holder IS NULL) THEN
            status := 'fenced';
            found_holder := longhaul.process_of(current.holder);
            RETURN;
        ELSIF current.head <> expected_head OR current.hash <> expected_hash THEN
            status := 'moved';
            found_seq := current.head;
            found_hash := current.hash;
            RETURN;
        ELSIF found_seq IS NOT NULL THEN
            status := 'duplicate';
            RETURN;
        END IF;
        -- Something changed between the two statements: look again.
    END LOOP;

    IF added = 1 THEN
        INSERT INTO longhaul.record (stream, seq, at, kind, key, prev, hash, gone, body)
        VALUES (number, expected_head + 1, ats[1], kinds[1], keys[1], prevs[1], hashes[1], gones[1], bodies[1]);
    ELSIF added > 1 THEN
        INSERT INTO longhaul.record (stream, seq, at, kind, key, prev, hash, gone, body)
        SELECT number, expected_head + n, a, k, y, p, h, g, b
        FROM unnest(ats, kinds, keys, prevs, hashes, gones, bodies) WITH ORDINALITY AS new (a, k, y, p, h, g, b, n);
    END IF;
    IF blob_hashes IS NOT NULL THEN
        -- Also locks a blob that is there, so that nothing drops it before this commits.
        INSERT INTO longhaul.blob AS known (hash, bytes)
        SELECT h, b FROM unnest(blob_hashes, blobs) AS given (h, b)
        ON CONFLICT (hash) DO UPDATE SET bytes = excluded.bytes WHERE known.bytes IS NULL;
    END IF;
    IF use_blobs IS NOT NULL THEN
        PERFORM 1 FROM longhaul.blob WHERE hash = ANY (use_blobs) ORDER BY hash FOR KEY SHARE;
        SELECT used INTO missing FROM unnest(use_blobs) AS used
        WHERE NOT EXISTS (
            SELECT 1 FROM longhaul.blob WHERE hash = used AND (lost_blobs_count OR bytes IS NOT NULL))
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'missing blob' USING ERRCODE = 'LH001', DETAIL = encode(missing, 'hex');
        END IF;
        INSERT INTO longhaul.blob_use (blob, stream, seq)
        SELECT b, number, s FROM unnest(use_blobs, use_seqs) AS used (b, s) ON CONFLICT DO NOTHING;
    END IF;
    FOR i IN 1..coalesce(array_length(name_changes, 1), 0) LOOP
        PERFORM longhaul.apply_name_change(name_changes[i], name_ids[i], name_keys[i]);
    END LOOP;
    status := 'done';
END $$;

-- Applies a record of the stream `names`. If a key is taken, its session keeps it.
CREATE FUNCTION longhaul.apply_name_change(change text, session_id text, session_key text) RETURNS void
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
    END CASE;
END $$;

-- Takes the lease on a stream if it is free or expired, or if it still has the token of a holder that is known to be
-- gone. Without a token in the answer, another process holds it.
CREATE FUNCTION longhaul.acquire_lease(
    stream_name text, process bigint, lease_ms bigint, gone_token bigint,
    OUT new_token bigint, OUT held_token bigint, OUT found_holder text
) LANGUAGE plpgsql AS $$
DECLARE
    clock   bigint;
    current longhaul.stream;
BEGIN
    PERFORM longhaul.require_durability();
    INSERT INTO longhaul.stream (name) VALUES (stream_name) ON CONFLICT DO NOTHING;
    LOOP
        clock := longhaul.now_ms();
        -- A stream that was removed and created again has another number, so no earlier token is valid.
        UPDATE longhaul.stream SET
            token = coalesce(token + 1, (id << 32) + 1), holder = process, expires_at = clock + lease_ms
        WHERE name = stream_name AND (holder IS NULL OR expires_at <= clock OR token = gone_token)
        RETURNING token INTO new_token;
        EXIT WHEN FOUND;
        SELECT * INTO current FROM longhaul.stream WHERE name = stream_name;
        IF NOT FOUND THEN
            INSERT INTO longhaul.stream (name) VALUES (stream_name) ON CONFLICT DO NOTHING;
        ELSIF current.holder IS NOT NULL AND current.expires_at > clock THEN
            held_token := current.token;
            found_holder := longhaul.process_of(current.holder);
            EXIT;
        END IF;
    END LOOP;
END $$;

-- Whether a removal or an append without records would be permitted.
CREATE FUNCTION longhaul.lease_permits(current longhaul.stream, lease_token bigint) RETURNS boolean
LANGUAGE sql AS $$
    SELECT CASE
        WHEN lease_token IS NULL THEN current.holder IS NULL OR current.expires_at <= longhaul.now_ms()
        ELSE current.token IS NOT DISTINCT FROM lease_token AND current.holder IS NOT NULL END
$$;

-- Drops those of the blobs that no record refers to. Two statements: the second one sees what an append that held a lock
-- has committed.
CREATE FUNCTION longhaul.drop_unused_blobs(candidates bytea[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    dropped bigint;
BEGIN
    PERFORM 1 FROM longhaul.blob WHERE hash = ANY (candidates) ORDER BY hash FOR UPDATE;
    DELETE FROM longhaul.blob
    WHERE hash = ANY (candidates) AND NOT EXISTS (SELECT 1 FROM longhaul.blob_use WHERE blob_use.blob = hash);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    RETURN dropped;
END $$;

-- Removes a stream with its records and the blobs that only they refer to. status: done, fenced.
CREATE FUNCTION longhaul.remove_stream(
    stream_name text, lease_token bigint, OUT status text, OUT found_holder text
) LANGUAGE plpgsql AS $$
DECLARE
    current    longhaul.stream;
    candidates bytea[];
BEGIN
    PERFORM longhaul.require_durability();
    status := 'done';
    SELECT * INTO current FROM longhaul.stream WHERE name = stream_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    ELSIF NOT longhaul.lease_permits(current, lease_token) THEN
        status := 'fenced';
        found_holder := longhaul.process_of(current.holder);
        RETURN;
    END IF;
    SELECT array_agg(DISTINCT blob) INTO candidates FROM longhaul.blob_use WHERE stream = current.id;
    DELETE FROM longhaul.blob_use WHERE stream = current.id;
    DELETE FROM longhaul.record WHERE stream = current.id;
    DELETE FROM longhaul.stream WHERE id = current.id;
    PERFORM longhaul.drop_unused_blobs(candidates);
    LOCK TABLE longhaul.erasure IN EXCLUSIVE MODE;
    INSERT INTO longhaul.erasure (stream) VALUES (stream_name);
END $$;

-- Replaces the bodies of records by stubs, all or none. Returns how many records it found.
CREATE FUNCTION longhaul.erase_bodies(
    stream_names text[], seqs bigint[], record_hashes bytea[], gones bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number     bigint;
    candidates bytea[];
    erased     bigint := 0;
BEGIN
    PERFORM longhaul.require_durability();
    FOR i IN 1..array_length(seqs, 1) LOOP
        SELECT id INTO number FROM longhaul.stream WHERE name = stream_names[i];
        -- The first stub stays.
        UPDATE longhaul.record SET body = NULL, gone = coalesce(gone, gones[i])
        WHERE stream = number AND seq = seqs[i] AND hash = record_hashes[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'changed meanwhile' USING ERRCODE = 'LH002';
        END IF;
        erased := erased + 1;
        candidates := candidates || (
            SELECT array_agg(blob) FROM longhaul.blob_use WHERE stream = number AND seq = seqs[i]);
        DELETE FROM longhaul.blob_use WHERE stream = number AND seq = seqs[i];
    END LOOP;
    PERFORM longhaul.drop_unused_blobs(candidates);
    LOCK TABLE longhaul.erasure IN EXCLUSIVE MODE;
    INSERT INTO longhaul.erasure (stream) SELECT DISTINCT unnest(stream_names);
    RETURN erased;
END $$;
