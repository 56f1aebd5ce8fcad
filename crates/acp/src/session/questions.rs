//! Questions of the session that the editor puts to its user. A question is a record: if another client answers it first, the editor
//! is told to stop asking.

use longhaul_protocol::{Answer, Answered, Question, QuestionId, QuestionKind};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::SessionTask;
use super::prompts::AwaitedEnd;
use crate::error::Result;
use crate::question::{self, Decision, Form};
use crate::wire::reply::StopReason;
use crate::wire::update::{SessionUpdate, ToolCall, ToolStatus};
use crate::wire::{ProtocolVersion, version2};

/// Questions that wait for an answer.
pub(super) struct AskedQuestions {
    asked: Vec<AskedQuestion>,
    decided: (mpsc::UnboundedSender<Decided>, mpsc::UnboundedReceiver<Decided>),
}

struct AskedQuestion {
    question: Question,
    form: Form,
    /// The request that the editor has not answered.
    request: Option<u64>,
}

/// What the editor's user decided about a question.
pub(super) struct Decided {
    question: QuestionId,
    decision: Decision,
}

impl AskedQuestions {
    pub(super) fn new() -> Self {
        Self { asked: Vec::new(), decided: mpsc::unbounded_channel() }
    }

    /// The next decision. Cancel-safe.
    pub(super) async fn next_decision(&mut self) -> Decided {
        match self.decided.1.recv().await {
            Some(decided) => decided,
            // The channel can't be closed: this struct has its sender too.
            None => std::future::pending().await,
        }
    }

    /// The question that the next prompt answers.
    pub(super) fn awaiting_prompt(&self) -> Option<Question> {
        self.asked.iter().find(|asked| asked.form == Form::Prompt).map(|asked| asked.question.clone())
    }

    /// An open question whether to carry out a plan.
    pub(super) fn open_plan(&self) -> Option<QuestionId> {
        self.asked
            .iter()
            .find(|asked| asked.question.kind == QuestionKind::Plan)
            .map(|asked| asked.question.id)
    }

    pub(super) fn are_open(&self) -> bool {
        !self.asked.is_empty()
    }

    fn is_asked(&self, id: QuestionId) -> bool {
        self.asked.iter().any(|asked| asked.question.id == id)
    }

    fn take(&mut self, id: QuestionId) -> Option<AskedQuestion> {
        let place = self.asked.iter().position(|asked| asked.question.id == id)?;
        Some(self.asked.remove(place))
    }
}

impl SessionTask {
    /// Asks the editor's user, unless it is asked already.
    pub(super) async fn ask(&mut self, question: Question) {
        if self.questions.is_asked(question.id) {
            return;
        }
        let form = Form::of(&question, self.setup.features.forms);
        let request = match form {
            Form::Prompt => {
                self.ask_as_text(&question, "answer with your next message").await;
                None
            }
            Form::Options | Form::TextField => Some(self.request_answer(&question, form).await),
        };
        self.questions.asked.push(AskedQuestion { question, form, request });
        self.show_open_state().await;
    }

    /// Sends the question to the editor. Its answer becomes a decision.
    async fn request_answer(&mut self, question: &Question, form: Form) -> u64 {
        let (session, work_dir) = (self.setup.editor_id.clone(), self.setup.work_dir.clone());
        let sent = if form == Form::TextField {
            self.setup.outbox.request("elicitation/create", question::text_field(&session, question)).await
        } else {
            let call = question.call.and_then(|call| self.fold.as_ref()?.waiting_call(call)).cloned();
            let tool_call = question::asked_call(question, call.as_ref(), &work_dir);
            // Editors show the request below the call, so the call comes first.
            let shown = match question.call {
                Some(call) => self.fold.as_mut().and_then(|fold| fold.show_waiting_call(call)),
                None => Some(SessionUpdate::ToolCall(tool_call.clone())),
            };
            if let Some(update) = shown {
                self.show(update).await;
            }
            let options = question::options(question);
            let params = match self.version() {
                ProtocolVersion::V1 => {
                    json!({"sessionId": session, "toolCall": tool_call, "options": options})
                }
                ProtocolVersion::V2 => {
                    let title = question.text.lines().next().unwrap_or_default();
                    version2::permission_request(&session, title, &tool_call, &options)
                }
            };
            self.setup.outbox.request("session/request_permission", params).await
        };
        let (decided, question, kind) = (self.questions.decided.0.clone(), question.id, question.kind);
        tokio::spawn(async move {
            // Closed if the connection ends or the question was settled elsewhere.
            if let Ok(reply) = sent.reply.await {
                let _ = decided.send(Decided { question, decision: question::decision(kind, form, reply) });
            }
        });
        sent.id
    }

    /// Asks as text, for an editor that has no form for the question. The turn's prompts are answered, so that the user can send the next one.
    async fn ask_as_text(&mut self, question: &Question, hint: &str) {
        self.remark(&format!("{}\n\n({hint})", question.text), "question").await;
        let mut prompts = self.prompts.take_of_turn(self.open_turn);
        prompts.extend(self.prompts.take_of_plan(question.id));
        for id in prompts {
            self.end_prompt(&id, StopReason::EndTurn).await;
        }
    }

    /// Tells the editor to stop asking: the session is closed.
    pub(super) async fn withdraw_requests(&mut self) {
        for request in self.questions.asked.drain(..).filter_map(|asked| asked.request) {
            self.setup.outbox.withdraw(request).await;
        }
    }

    /// Carries out what the editor's user decided.
    pub(super) async fn answer(&mut self, decided: Decided) -> Result<()> {
        let Decided { question, decision } = decided;
        let Some(asked) = self.questions.asked.iter_mut().find(|asked| asked.question.id == question) else {
            return Ok(());
        };
        asked.request = None;
        match decision {
            Decision::Answer(answer) => {
                // Another client may have been faster; then the record of its answer comes next.
                let answered = self.setup.session.put_answer(question, &answer).await;
                self.follow_closely().await?;
                match answered {
                    Ok(_)
                    | Err(
                        longhaul_agent::Error::NoSuchQuestion { .. }
                        | longhaul_agent::Error::QuestionSettled { .. },
                    ) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            // The editor also says this if the user has already cancelled the turn.
            Decision::Cancel if self.open_turn.is_some() && self.cancelled_turn == self.open_turn => Ok(()),
            Decision::Cancel => self.cancel().await,
            Decision::Unable(reason) => {
                asked.form = Form::Prompt;
                let question = asked.question.clone();
                let hint = format!("the editor can't ask this ({reason}); answer with your next message");
                self.ask_as_text(&question, &hint).await;
                Ok(())
            }
        }
    }

    /// A prompt that answers a question.
    pub(super) async fn answer_by_prompt(
        &mut self,
        id: &Value,
        question: &Question,
        text: &str,
    ) -> Result<()> {
        self.setup.session.put_answer(question.id, question::answer_of(question, text)).await?;
        match self.version() {
            ProtocolVersion::V1 => {
                let awaited = self.open_turn.map_or(AwaitedEnd::Plan(question.id), AwaitedEnd::Turn);
                self.prompts.push(id.clone(), awaited);
            }
            ProtocolVersion::V2 => self.accept_command(id, text).await,
        }
        self.follow_closely().await
    }

    /// A question was answered here or elsewhere, or withdrawn with its turn.
    pub(super) async fn settle_question(&mut self, answered: &Answered) {
        let Some(asked) = self.questions.take(answered.id) else { return };
        if let Some(request) = asked.request {
            self.setup.outbox.withdraw(request).await;
        }
        let is_no = matches!(Answer::parse(&answered.answer), Answer::No);
        if asked.question.call.is_none() && asked.form == Form::Options {
            let status = Some(if is_no { ToolStatus::Failed } else { ToolStatus::Completed });
            let tool_call_id = question::tool_call_id(&asked.question);
            let settled = ToolCall { tool_call_id, status, ..ToolCall::default() };
            self.show(SessionUpdate::ToolCallUpdate(settled)).await;
        }
        for id in self.prompts.take_of_plan(answered.id) {
            match is_no {
                true => self.end_prompt(&id, StopReason::EndTurn).await,
                false => self.prompts.push(id, AwaitedEnd::PlanInput),
            }
        }
        match (self.questions.are_open(), self.open_turn) {
            (false, None) if is_no => {
                self.show_state(json!({"state": "idle", "stopReason": StopReason::EndTurn})).await;
            }
            _ => self.show_open_state().await,
        }
    }
}
