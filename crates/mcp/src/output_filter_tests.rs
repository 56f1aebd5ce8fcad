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
    let printed = b"Starting up\n{\"id\":1}\r\n\nINFO done\n{\"id\":2}\n{not json}\n{\"cut\":";

    let (heard, trouble) = filtered(printed).await;

    assert_eq!(heard, "{\"id\":1}\r\n{\"id\":2}\n");
    assert!(trouble.warning().unwrap().contains("Starting up"), "{trouble:?}");
    assert_eq!(trouble.fatal(), None);
}

/// E1: memory stays bounded, whatever a server sends.
#[tokio::test]
async fn a_message_that_never_ends_closes_the_connection() {
    let printed = vec![b'x'; MAX_MESSAGE_BYTES + (1 << 20)];

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
