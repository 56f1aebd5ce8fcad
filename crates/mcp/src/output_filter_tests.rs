use super::*;

async fn filtered(printed: &[u8]) -> (String, OutputTrouble) {
    let (server, mut program) = UnixStream::pair().unwrap();
    let (mut client, trouble, _filter) = filter_messages(server, Vec::new());
    let bytes = printed.to_vec();
    tokio::spawn(async move {
        let _ = program.write_all(&bytes).await;
    });
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    (heard, trouble)
}

/// E1
#[tokio::test]
async fn only_whole_messages_pass_and_the_first_stray_line_is_remembered() {
    let printed =
        b"Starting up\n{\"method\":\"a\"}\r\n\nINFO done\n{\"method\":\"b\"}\n{not json}\n{\"cut\":";

    let (heard, trouble) = filtered(printed).await;

    assert_eq!(heard, "{\"method\":\"a\"}\r\n{\"method\":\"b\"}\n");
    assert!(trouble.warning().unwrap().contains("Starting up"), "{trouble:?}");
    assert_eq!(trouble.fatal(), None);
}

/// E1, E2: a call whose answer can't be read does not wait for its whole timeout.
#[tokio::test]
async fn an_answer_that_can_not_be_read_becomes_an_error_of_its_call() {
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":4,"result":{{"a":{}{}}}}}"#, "[".repeat(300), "]".repeat(300));
    let unreadable = [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":\"\xff\"}}"[..],
        br#"{"id":2,"result":{}}"#,
        br#"{"jsonrpc":"2.0","id":"3"}"#,
        deep.as_bytes(),
    ];
    let passed =
        [&br#"{"jsonrpc":"2.0","id":5,"result":{}}"#[..], br#"{"jsonrpc":"2.0","id":6,"method":"x/y"}"#];

    let (heard, trouble) = filtered(&[&unreadable[..], &passed[..], &[&b""[..]]].concat().join(&b'\n')).await;

    let heard: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = heard.iter().map(|message| message["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2), json!("3"), json!(4), json!(5), json!(6)]);
    let errors: Vec<_> = heard.iter().map(|message| message["error"]["code"] == UNREADABLE_ANSWER).collect();
    assert_eq!(errors, [true, true, true, true, false, false]);
    assert!(trouble.warning().is_some());
}

/// E1: a program that is fetched before it runs answers the first message when the client has asked otherwise.
#[tokio::test]
async fn an_answer_to_the_first_request_is_dropped_once_the_client_has_sent_another() {
    for is_late in [true, false] {
        let (server, mut program) = UnixStream::pair().unwrap();
        let (mut client, _, _filter) = filter_messages(server, Vec::new());
        let (first, second) = (b"{\"id\":7,\"method\":\"a\"}\n", b"{\"id\":8,\"method\":\"b\"}\n");
        let answers = br#"{"jsonrpc":"2.0","id":7,"result":{}}
{"jsonrpc":"2.0","id":8,"result":{}}
"#;
        client.write_all(first).await.unwrap();
        program.read_exact(&mut vec![0; first.len()]).await.unwrap();
        if is_late {
            client.write_all(second).await.unwrap();
            program.read_exact(&mut vec![0; second.len()]).await.unwrap();
        }

        program.write_all(answers).await.unwrap();
        drop(program);

        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard.contains("\"id\":7"), !is_late, "{heard}");
        assert!(heard.contains("\"id\":8"), "{heard}");
    }
}

/// E1: memory stays bounded, whatever a server sends.
#[tokio::test]
async fn a_message_that_never_ends_closes_the_connection() {
    let printed = vec![b'x'; MAX_MESSAGE_BYTES + (1 << 20)];

    let (heard, trouble) = filtered(&printed).await;

    assert_eq!(heard, "");
    assert_eq!(trouble.fatal().unwrap(), "it sent a message of more than 16 MiB");
}

/// E1: the client of the protocol drops a message that is a little too long without a word, and its call would wait for the whole timeout.
#[tokio::test]
async fn a_message_that_is_a_little_too_long_closes_the_connection_too() {
    let mut printed = b"{\"id\": \"".to_vec();
    printed.resize(MAX_MESSAGE_BYTES, b'x');
    printed.extend_from_slice(b"\"}\n");

    let (heard, trouble) = filtered(&printed).await;

    assert_eq!(heard, "");
    assert_eq!(trouble.fatal().unwrap(), "it sent a message of more than 16 MiB");
}

/// E1: a server that reads nothing is not left behind: its connection closes with the filter.
#[tokio::test]
async fn the_connection_of_a_server_that_reads_nothing_closes_with_the_filter() {
    let (server, mut program) = UnixStream::pair().unwrap();
    let (mut client, _, filter) = filter_messages(server, Vec::new());
    // Until neither the pipe nor the socket takes more.
    let full = std::time::Duration::from_millis(100);
    while tokio::time::timeout(full, client.write_all(&[b'x'; 4096])).await.is_ok() {}

    drop(filter);

    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
    assert!(!rest.is_empty());
}
