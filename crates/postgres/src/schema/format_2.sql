-- Format 2 of the journal: appends of one record.
UPDATE longhaul.format SET format = 2 WHERE application = 'longhaul journal';

-- `append` for what nearly every append is: one record with a body, without blobs, outside of the stream `names`. It has half of the
-- arguments and no arrays. An append that doesn't fit at once is left to `append`, which says why.
CREATE FUNCTION longhaul.append_one(
    stream_name text, expected_head bigint, expected_hash bytea, lease_token bigint, lease_ms bigint,
    record_at bigint, record_kind text, record_key bytea, record_hash bytea, record_body text,
    OUT status text, OUT found_seq bigint, OUT found_hash bytea, OUT found_holder text, OUT clock bigint
) LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    clock := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    IF record_key IS NOT NULL THEN
        SELECT record.seq INTO found_seq
        FROM longhaul.stream JOIN longhaul.record ON record.stream = stream.id
        WHERE stream.name = stream_name AND record.key = record_key;
    END IF;
    IF found_seq IS NULL THEN
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
        IF FOUND THEN
            INSERT INTO longhaul.record (stream, seq, at, kind, key, prev, hash, body)
            VALUES (number, expected_head + 1, record_at, record_kind, record_key, expected_hash, record_hash, record_body);
            status := 'done';
            RETURN;
        END IF;
    END IF;
    SELECT * INTO status, found_seq, found_hash, found_holder, clock FROM longhaul.append(
        stream_name, expected_head, expected_hash, lease_token, lease_ms,
        ARRAY[record_at], ARRAY[record_kind], ARRAY[record_key], ARRAY[expected_hash], ARRAY[record_hash],
        ARRAY[NULL::bytea], ARRAY[record_body], record_key IS NOT NULL,
        CASE WHEN record_kind = 'epoch_started' THEN expected_head + 1 END,
        NULL, NULL, NULL, NULL, false, NULL, NULL, NULL);
END $$;
