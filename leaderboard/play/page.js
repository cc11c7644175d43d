"use strict";

// Everything from outside is written as text (textContent) or as the address of a picture, never as HTML.

const part = (id) => document.getElementById(id);
const address = (image) => "/picture?image=" + encodeURIComponent(image);
let now = null;

function picture(image, alt) {
  const made = document.createElement("img");
  made.src = address(image);
  made.alt = alt;
  return made;
}

function text(tag, words, css) {
  const made = document.createElement(tag);
  made.textContent = words;
  made.className = css;
  return made;
}

function topItem(image, place) {
  const item = document.createElement("li");
  const wanted = image === now.target;
  item.append(picture(image, "Place " + (place + 1) + (wanted ? ", what you want" : "")));
  item.className = wanted ? "wanted" : "";
  return item;
}

function saidItem(round) {
  const item = document.createElement("li");
  const from = picture(round.reference === null ? "" : round.reference, "Said of this picture");
  from.addEventListener("error", () => { from.style.visibility = "hidden"; });
  item.append(from, text("span", round.words || "(skipped)", "words"), text("span", round.rank, "at"));
  return item;
}

function problem(words) {
  part("problem").textContent = words;
  part("problem").hidden = !words;
}

function show(state) {
  now = state;
  const done = state.done !== undefined;
  part("wait").hidden = true;
  part("play").hidden = done;
  part("done").hidden = !done;
  part("file").textContent = state.file;
  if (done) {
    part("place").textContent = "";
    part("summary").textContent = state.done;
    return;
  }
  const ended = state.end !== "";
  part("place").textContent = "Session " + state.number + " of " + state.sessions + " · Round " + state.round + " of " + state.rounds;
  part("target").src = address(state.target);
  part("found").src = address(state.found);
  part("found-label").textContent = state.said.length ? "What was found" : "What is there";
  part("rank").textContent = state.rank && (state.better ? "▲ " : state.worse ? "▼ " : "") + "Rank: " + state.rank;
  part("rank").className = state.better ? "better" : state.worse ? "worse" : "";
  part("end").textContent = state.end;
  part("end").className = state.solved ? "solved" : "";
  part("end").hidden = !ended;
  part("form").hidden = ended;
  part("next").hidden = !ended;
  part("next").textContent = state.left ? "Next session" : "See the result";
  part("best").hidden = !state.top.length;
  part("top").replaceChildren(...state.top.map(topItem));
  part("so-far").hidden = !state.said.length;
  part("said").replaceChildren(...state.said.map(saidItem));
  part("words").value = "";
  problem("");
}

function busy(on) {
  for (const id of ["send", "skip", "next"]) part(id).disabled = on;
  part("words").readOnly = on;
}

async function ask(path, body) {
  busy(true);
  try {
    const request = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, request);
    const found = await answer.json();
    if (answer.ok) {
      show(found);
    } else if (found.error.code === "answered") {
      const typed = body && body.words;
      await ask("/state");
      problem("This round was played in another window" + (typed ? ", so that “" + typed + "” was not used" : "") + ". Go on with what stands here now.");
      return;
    } else {
      const said = found.error.message;
      problem(said[0].toUpperCase() + said.slice(1) + " Fix: " + found.error.fix);
    }
  } catch (error) {
    const words = "The program that serves this page does not answer. Start it again by the same command: nothing is lost.";
    part("wait").textContent = words;
    problem(words);
  }
  busy(false);
  // Enter does what comes next; only what is not disabled takes the focus.
  const next = part("done").hidden ? part(part("form").hidden ? "next" : "words") : part("done-head");
  next.focus({ preventScroll: true });
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!part("send").disabled) ask("/say", { session: now.session, round: now.round, words: part("words").value });
});
part("skip").addEventListener("click", () => ask("/say", { session: now.session, round: now.round, words: null }));
part("next").addEventListener("click", () => ask("/state"));
ask("/state");
