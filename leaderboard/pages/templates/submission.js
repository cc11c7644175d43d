"use strict";
// The page of a submission. The key of a private link stands behind the # of the address, which goes to no
// server; it is sent as a header. What a server says is put into the page as text, or is a page of its own.
(() => {
  const SECOND = 1000;
  const key = /^#edit_/.test(location.hash) ? location.hash.slice(1) : "";
  const headers = key ? { "X-Edit-Key": key } : {};
  const part = (id) => document.getElementById(id);
  if (key) document.documentElement.classList.add("opening");

  // The server's own page, as this reader may see it.
  async function reload() {
    const answer = await fetch(location.pathname + location.search, { headers, cache: "no-store" });
    if (!(answer.headers.get("content-type") || "").startsWith("text/html")) throw new Error(await said(answer));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    part("crumbs").replaceWith(fresh.getElementById("crumbs"));
    const unfolded = [...document.querySelectorAll("#submission details[open]")].map((one) => one.id);
    part("submission").replaceWith(fresh.getElementById("submission"));
    for (const id of unfolded) if (id && part(id)) part(id).open = true;
    document.title = fresh.title;
  }

  async function said(answer) {
    let error = null;
    try { error = (await answer.json()).error; } catch { /* not JSON */ }
    return error ? `${error.message} Fix: ${error.fix}.` : `The server answers ${answer.status}.`;
  }

  // A browser's own word for a server that does not answer is "Failed to fetch".
  function reason(error) {
    return error instanceof TypeError ? "The server does not answer. Fix: try again in a moment." : error.message;
  }

  async function ask(path, body) {
    const sent = body === undefined ? { headers, cache: "no-store" } : {
      method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body),
    };
    const answer = await fetch(part("submission").dataset.api + path, sent);
    if (!answer.ok) throw new Error(await said(answer));
    return answer.json();
  }

  function arrive() {
    part("outcome").focus();
    part("outcome").scrollIntoView({ block: "nearest" });
  }

  async function watch(waited) {
    const state = part("submission").dataset.waits;
    if (!state) return;
    await new Promise((done) => { setTimeout(done, waited < 60 * SECOND ? SECOND : 5 * SECOND); });
    try {
      const now = document.hidden ? { state } : await ask("");
      if (now.state !== state) {
        const held = document.activeElement;
        const there = held === document.body || part("outcome").contains(held) || part("submission").contains(held);
        await reload();
        // Where the focus goes to the outcome, it is read there; else it is said, and not shown a second time.
        part("said").classList.add("visually-hidden");
        part("said").textContent = "";
        if (there) arrive();
        else part("said").textContent = part("outcome-head").textContent;
      }
      else part("said").textContent = "";
    } catch (error) {
      part("said").classList.remove("visually-hidden");
      part("said").textContent = reason(error);
    }
    await watch(waited + SECOND);
  }

  const values = {
    text: (written) => written.trim() || null,
    list: (written) => {
      const parts = written.split(",").map((one) => one.trim()).filter(Boolean);
      return parts.length ? parts : null;
    },
    bool: (written) => (written === "" ? null : written === "yes"),
  };

  async function correct(form, seen) {
    const method = {};
    for (const field of form.querySelectorAll("[data-kind]")) {
      method[field.name] = values[field.dataset.kind](field.value);
    }
    const submitter = method.submitter;
    delete method.submitter;
    return ask("/correct", { method, submitter, seen });
  }

  const DONE = {
    correct: "Saved.",
    publish: "Published.",
    unpublish: "Taken off the board; only you and the organisers see it now.",
    withdraw: "Withdrawn.",
  };

  async function act(name) {
    const form = part("owner-form");
    const words = form && form.querySelector("[data-kind]");
    if (words && (name === "correct" || name === "publish") && !form.reportValidity()) return;
    if (name === "withdraw" && !(await sure())) return;
    const buttons = [...document.querySelectorAll("#submission [data-act]")];
    if (buttons.some((one) => one.disabled)) return;
    const trouble = part("trouble");
    trouble.replaceChildren();
    part("said").textContent = "";
    for (const one of buttons) one.disabled = true;
    try {
      if (name === "send-on" || name === "bundle") {
        const moved = await ask(`/${name}`, {});
        location.assign(`./${encodeURIComponent(moved.id)}${key ? `#${key}` : ""}`);
        return;
      }
      const before = Number(part("submission").dataset.events);
      let now = null;
      if (words && (name === "correct" || name === "publish")) now = await correct(form, before);
      // What has come from another window since this page was made is not written over.
      if (name !== "correct") now = await ask(`/${name}`, { seen: now ? now.events.length : before });
      await reload();
      part("said").classList.remove("visually-hidden");
      part("said").textContent = now.events.length > before ? DONE[name] : "Nothing has changed.";
      arrive();
    } catch (error) {
      const message = document.createElement("p");
      message.className = "notice bad";
      message.textContent = reason(error);
      trouble.append(message);
      trouble.focus();
    } finally {
      for (const one of buttons) one.disabled = false;
    }
  }

  // Asks before something that has no way back.
  function sure() {
    const asked = part("sure");
    asked.returnValue = "";
    asked.showModal();
    return new Promise((answer) => {
      asked.addEventListener("close", () => answer(asked.returnValue === "yes"), { once: true });
    });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act], [data-sure], a.skip");
    if (!button) return;
    if (button.matches("a.skip")) {
      // The way to the content must not take the key's place in the address.
      event.preventDefault();
      part("main").focus();
    } else if (button.dataset.sure) part("sure").close(button.dataset.sure);
    else if (button.type === "button") act(button.dataset.act);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "owner-form") return;
    event.preventDefault();
    act("correct");
  });
  // Another private link in the same window.
  window.addEventListener("hashchange", () => location.reload());

  document.addEventListener("DOMContentLoaded", async () => {
    if (key) {
      try { await reload(); } catch (error) { part("said").textContent = reason(error); }
      document.documentElement.classList.remove("opening");
    }
    const before = document.referrer ? new URL(document.referrer) : null;
    if (before && before.origin === location.origin && /\/(submit|s\/[^/]+)$/.test(before.pathname)) arrive();
    watch(0);
  });
})();
