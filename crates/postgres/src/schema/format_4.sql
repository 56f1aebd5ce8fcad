-- Format 4 of the journal: appends of one record, with an answer that costs less.
UPDATE longhaul.format SET format = 4 WHERE application = 'longhaul journal';

-- As `append_one`, but it returns one value: the clock if the record is committed, and nothing if the append doesn't fit at once. Then
-- nothing has changed, and `append` says why. A function with one value is planned and answered faster than one with a row.
CREATE FUNCTION longhaul.append_record(
    stream_name text, expected_head bigint, expected_hash bytea, lease_token bigint, lease_ms bigint,
    record_at bigint, record_kind text, record_key bytea, record_hash bytea, record_body text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
    clock  bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF record_key IS NOT NULL THEN
        PERFORM 1 FROM longhaul.stream JOIN longhaul.record ON record.stream = stream.id
        WHERE stream.name = stream_name AND record.key = record_key;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    UPDATE longhaul.stream SET
        head = expected_head + 1,
        hash = record_hash,
        last_at = record_at,
        epoch = CASE WHEN record_kind = 'epoch_started' THEN expected_head + 1 ELSE epoch END,
        expires_at = CASE
            WHEN lease_token IS NOT NULL AND clock + lease_ms - expires_at >= lease_ms / 4 THEN clock + lease_ms
            ELSE expires_at END
    WHERE name = stream_name AND hash = expected_hash AND head = expected_head
        AND CASE
            WHEN lease_token IS NULL THEN holder IS NULL OR expires_at <= clock
            ELSE token = lease_token AND holder IS NOT NULL END
    RETURNING id INTO number;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO longhaul.record (stream, seq, at, kind, key, prev, hash, body)
    VALUES (number, expected_head + 1, record_at, record_kind, record_key, expected_hash, record_hash, record_body);
    RETURN clock;
END $$;
