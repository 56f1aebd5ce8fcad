//! What goes into the inbox without waiting for a turn: inputs, orders, answers; and cancelling.

use std::time::Duration;

use longhaul_journal::{Blob, check_size};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, PermissionMode, QuestionId, Sender,
    SessionId, StreamName, TurnEnded,
};

use super::{Link, Session};
use crate::client::accepted::{Accepted, AcceptedOrder, RepeatCheck, accept_input, accept_order};
use crate::client::cancel::{CANCEL_GRACE, CancelOutcome, cancel_turn};
use crate::client::questions::{answer_question, recorded_answer};
use crate::client::request::UserMessage;
use crate::worker::WorkerStop;
use crate::{Error, Result};

impl Session {
    /// Puts an input into the inbox. When this returns, the input is on disk, and the process that runs the session
    /// answers it. Two inputs with the same idempotency key count as one.
    pub async fn put(&self, input: Input, idempotency_key: Option<&str>) -> Result<Accepted> {
        self.put_with_blobs(input, vec![], idempotency_key.map(|key| (key, RepeatCheck::Key))).await
    }

    /// Like [`put`](Self::put). The same key with another input is [`Error::KeyReused`].
    pub async fn put_once(&self, input: Input, idempotency_key: &str) -> Result<Accepted> {
        self.put_with_blobs(input, vec![], Some((idempotency_key, RepeatCheck::KeyAndContent))).await
    }

    /// Like [`put`](Self::put), for a message that may have images. The same key with another message is
    /// [`Error::KeyReused`].
    pub async fn put_message(
        &self,
        message: &UserMessage,
        mode: JoinMode,
        idempotency_key: Option<&str>,
    ) -> Result<Accepted> {
        let input = message.input(InputId::generate(), mode);
        let key = idempotency_key.map(|key| (key, RepeatCheck::KeyAndContent));
        self.put_with_blobs(input, message.blobs(), key).await
    }

    /// Like [`put`](Self::put), with the bytes of the input's images.
    pub async fn put_with_images(&self, input: Input, images: Vec<Blob>, key: &str) -> Result<Accepted> {
        self.put_with_blobs(input, images, Some((key, RepeatCheck::Key))).await
    }

    async fn put_with_blobs(
        &self,
        input: Input,
        blobs: Vec<Blob>,
        key: Option<(&str, RepeatCheck)>,
    ) -> Result<Accepted> {
        if let Link::Local(local) = &self.link {
            return local.put(input, blobs, key).await;
        }
        let record = self.redactor.redact_record(InboxRecord::Input(input).encode());
        // An input that can't be accepted must not create a session.
        check_size(&record)?;
        let id = self.named().await?;
        let after = self.journal.head(&StreamName::session(id)).await?.seq;
        let accepted = accept_input(&*self.journal, id, after, record, blobs, key).await?;
        self.wake_holder(id).await;
        Ok(accepted)
    }

    /// Puts an order into the inbox without waiting for its outcome. Does nothing for a session that was never used.
    pub async fn order(&self, kind: OrderKind) -> Result<()> {
        match self.known_id().await? {
            Some(_) => self.put_order(kind, None).await.map(drop),
            None => Ok(()),
        }
    }

    /// Puts an order into the inbox. When this returns, the order is on disk, and the process that runs the session
    /// carries it out. Two orders with the same idempotency key count as one.
    pub async fn put_order(&self, kind: OrderKind, idempotency_key: Option<&str>) -> Result<AcceptedOrder> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let order = Order { id: OrderId::generate(), kind };
        let accepted = accept_order(&*self.journal, &self.redactor, id, order, idempotency_key).await?;
        self.wake_holder(id).await;
        Ok(accepted)
    }

    /// Wakes the process that runs the session. The inbox has something new.
    async fn wake_holder(&self, id: SessionId) {
        match &self.link {
            Link::Local(local) => local.wake_holder(id).await,
            // The holder finds the record even if this wake is lost.
            Link::Detached { .. } => drop(self.journal.wake_holder(&StreamName::session(id)).await),
        }
    }

    /// Adds a text to the context without starting a turn: the model sees it with the next request. When this returns, the
    /// text is on disk, and the worker takes it at once. It counts as data (P8), never as the user's words.
    pub async fn add_context(&self, text: impl Into<String>) -> Result<()> {
        self.named().await?;
        self.order(OrderKind::AddContext { text: text.into() }).await?;
        if let Link::Local(local) = &self.link {
            let _ = local.wake().await;
        }
        Ok(())
    }

    /// Changes the permission mode. It applies to every call that begins once the process that runs the session has recorded it.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<()> {
        self.named().await?;
        self.order(OrderKind::Mode { mode }).await
    }

    /// Cancels the running turn and waits until its end is recorded. `None` if no turn was running.
    pub async fn cancel(&self) -> Result<Option<TurnEnded>> {
        match self.cancel_within(CANCEL_GRACE).await? {
            CancelOutcome::Ended(ended) => Ok(Some(ended)),
            CancelOutcome::NoTurn => Ok(None),
            CancelOutcome::Pending => Err(Error::CancelPending { key: self.key().to_owned() }),
        }
    }

    /// Cancels the running turn. If another process runs it, waits at most this long for its end.
    pub async fn cancel_within(&self, grace: Duration) -> Result<CancelOutcome> {
        let Some(id) = self.known_id().await? else { return Ok(CancelOutcome::NoTurn) };
        if let Link::Local(local) = &self.link {
            match local.order(OrderKind::Cancel, OrderId::generate()).await {
                Ok(ended) => return Ok(ended.map_or(CancelOutcome::NoTurn, CancelOutcome::Ended)),
                Err(WorkerStop::HeldElsewhere(_) | WorkerStop::TakenOver(_)) => {}
                Err(stop) => return Err(stop.into_error()),
            }
        }
        cancel_turn(&self.remote(id), grace).await
    }

    /// Answers an open question. `yes` allows the action and `no` refuses it. Any other text refuses it too, and the
    /// model reads the text as the reason.
    pub async fn answer(&self, question: QuestionId, answer: &str) -> Result<()> {
        self.put_answer(question, answer).await.map(drop)
    }

    /// Like [`answer`](Self::answer). Returns the order that answers the question.
    pub async fn put_answer(&self, question: QuestionId, answer: &str) -> Result<AcceptedOrder> {
        self.put_answer_of(Sender::Person, question, answer).await
    }

    /// Like [`put_answer`](Self::put_answer), with the sender of the answer. An agent's answer counts once: it allows nothing from now on,
    /// and its words are not the user's (P8).
    pub async fn put_answer_of(
        &self,
        sender: Sender,
        question: QuestionId,
        answer: &str,
    ) -> Result<AcceptedOrder> {
        let missing = || Error::NoSuchQuestion {
            key: self.key().to_owned(),
            question: question.to_string(),
            known: "the session is empty".to_owned(),
        };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let answer = self.redactor.redact(answer);
        let accepted = answer_question(&*self.journal, self.key(), id, (question, &answer), sender).await?;
        self.wake_holder(id).await;
        Ok(accepted)
    }

    /// The order that gave this answer to this question, if one did.
    pub async fn recorded_answer(&self, question: QuestionId, answer: &str) -> Result<Option<AcceptedOrder>> {
        match self.known_id().await? {
            Some(id) => recorded_answer(&*self.journal, id, question, &self.redactor.redact(answer)).await,
            None => Ok(None),
        }
    }
}
