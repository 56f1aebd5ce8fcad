//! Finding the order of roles that a server accepts.
//!
//! A server that refuses an order is sent the same request in a plainer one, until one is accepted or none is left. The order that
//! was accepted is kept for the server. Where a refusal gives no reason, the order of roles may be the cause: the plainest usual
//! order is tried once for each server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec::Asked;
use crate::learned::{Learned, ServedModel};
use crate::target::Target;
use crate::{Class, Failure, Request, RoleOrder};

/// How often one request may be sent again in another order of roles. There are fewer orders than this.
pub const MAX_REORDERED: u32 = 6;

/// The order of roles that is used for one model of one server.
pub(crate) struct RoleOrders {
    learned: Arc<Learned>,
    model: ServedModel,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    accepted: RoleOrder,
    /// An order that is tried after a refusal.
    trial: Option<RoleOrder>,
    /// An order was tried because of a refusal without a reason.
    guessed: bool,
}

impl RoleOrders {
    pub(crate) fn new(target: &Target, learned: Arc<Learned>) -> Self {
        let model = target.served_model();
        let accepted = learned.about(&model).roles.unwrap_or(target.quirks.roles);
        Self { learned, model, state: Mutex::new(State { accepted, trial: None, guessed: false }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in one order of roles.
pub(crate) struct RoleCheck {
    orders: Arc<RoleOrders>,
    target: Arc<Target>,
    request: Request,
    order: RoleOrder,
    is_over: bool,
}

impl RoleCheck {
    /// A request in the order that is used now.
    pub(crate) fn new(orders: Arc<RoleOrders>, target: Arc<Target>, request: Request) -> Self {
        let state = *orders.state();
        let order = state.trial.unwrap_or(state.accepted);
        Self { orders, target, request, order, is_over: false }
    }

    /// The body of the request.
    pub(crate) fn body(&self) -> Vec<u8> {
        self.body_in(self.order)
    }

    fn body_in(&self, roles: RoleOrder) -> Vec<u8> {
        let target = &self.target;
        target.protocol.encode(&Asked {
            request: &self.request,
            model: &target.model,
            author: &target.name,
            quirks: &target.quirks,
            roles,
            reasons: target.entry.as_ref().is_some_and(|entry| entry.reasons),
        })
    }

    /// The server has begun to answer. An order that was on trial is kept, if the request shows the difference.
    pub(crate) fn accepted(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let state = *self.orders.state();
        if state.trial != Some(self.order) || self.body() == self.body_in(state.accepted) {
            return;
        }
        *self.orders.state() = State { accepted: self.order, trial: None, ..state };
        self.orders.learned.learn(&self.orders.model, |lesson| lesson.roles = Some(self.order));
    }

    /// What a refusal comes to: [`Class::RoleOrder`] where the same request in another order of roles may be accepted. That order
    /// is used from then on.
    pub(crate) fn refused(&mut self, failure: Failure) -> Failure {
        let is_named = failure.class == Class::RoleOrder;
        let is_opaque = failure.class == Class::Invalid && matches!(failure.status, Some(400 | 422));
        if !(is_named || is_opaque) || std::mem::replace(&mut self.is_over, true) {
            return failure;
        }
        let mut state = self.orders.state();
        // Another request has learned something since this one was sent.
        if state.trial.unwrap_or(state.accepted) != self.order {
            return self.target.another_order(failure);
        }
        let body = self.body();
        let is_other = |order: &RoleOrder| self.body_in(*order) != body;
        let next = if is_named {
            self.order.plainer().find(is_other)
        } else if state.guessed {
            None
        } else {
            state.guessed = true;
            let plain = RoleOrder::Alternating;
            Some(plain).filter(|plain| *plain > self.order).filter(is_other)
        };
        state.trial = next;
        match next {
            Some(_) => self.target.another_order(failure),
            None => self.target.no_other_order(failure),
        }
    }
}
