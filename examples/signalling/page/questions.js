// Questions of others in the room: to take another role, or to come on stage. The answers, too.

/** The topics of an invitation on stage, and of the answer to it. */
const [INVITATION, ANSWER] = ["HOSTREQUESTED", "ACK"];

/**
 * `ask(question)` has one to answer with `answer()`: `{kind: "role", request, role, by, expires}` or
 * `{kind: "stage", by}`. `tell(message)` is for news.
 */
export class Questions {
  #call;
  #ask;
  #tell;

  constructor(call, { ask, tell }) {
    this.#call = call;
    this.#ask = ask;
    this.#tell = tell;
    const run = (task) => task.catch((error) => console.error(error));
    call.addEventListener("joined", ({ detail }) => {
      run(this.#listen());
      if (detail.resumed) run(this.#askAgain());
    });
    call.addEventListener("message", ({ detail }) => this.#hear(detail));
    call.addEventListener("event", ({ detail: { event, data } }) => {
      if (event === "room.stateChanged" && data.state === "ready") run(this.#listen());
      this.#take(event, data);
    });
  }

  /** Invites a participant without media on stage; one who accepts changes the mode itself. */
  async invite(participant) {
    const { me, name } = this.#call;
    const payload = { receiverId: participant, senderId: me, senderName: name };
    const message = "Request for mode change your mode";
    await this.#publish({ topic: INVITATION, message, payload, to: [participant] });
  }

  async answer(question, accepts) {
    const call = this.#call;
    if (question.kind === "role") {
      await call.request(accepts ? "role.accept" : "role.decline", { request: question.request });
      return;
    }
    const mode = { participant: call.me, mode: "SEND_AND_RECV" };
    if (accepts) await call.request("participant.setMode", mode);
    const payload = { receiverId: question.by, accpeterName: call.name }; // spelt as in VideoSDK's
    const message = accepts ? "ACCEPTED" : "DECLINED";
    await this.#publish({ topic: ANSWER, message, payload, to: [question.by] });
  }

  #publish(fields) {
    return this.#call.request("message.publish", fields);
  }

  async #listen() {
    if (!this.#call.roomState.hasMessages) return;
    for (const topic of [INVITATION, ANSWER]) await this.#call.request("message.subscribe", { topic });
  }

  /** Asks the questions that came while the connection was broken. */
  async #askAgain() {
    const { requests } = await this.#call.request("role.requests");
    for (const it of requests) {
      if (it.participant === this.#call.me) this.#ask({ kind: "role", ...it });
    }
  }

  #take(event, data) {
    const { me, roomState } = this.#call;
    const name = roomState.nameOf(data.participant);
    const isMine = data.participant === me;
    if (event === "role.changeRequested" && isMine) this.#ask({ kind: "role", ...data });
    if (event === "role.changeDeclined" && !isMine) this.#tell(`${name} would rather not be ${data.role}.`);
    if (event === "role.requestExpired" && data.requester === me && data.reason === "timeout") {
      this.#tell(`${name} did not answer.`);
    }
    if (event === "floor.denied" && isMine) this.#tell("A moderator did not give you the floor.");
  }

  #hear({ topic, message, payload, from }) {
    const { me, roomState, participants } = this.#call;
    if (payload?.receiverId !== me || !participants.has(from)) return;
    if (topic === INVITATION) this.#ask({ kind: "stage", by: from });
    if (topic === ANSWER && message === "DECLINED") {
      this.#tell(`${roomState.nameOf(from)} would rather not come on stage.`);
    }
  }
}
