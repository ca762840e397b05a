"use strict";
// Opens and closes all folds at once. Without this script each fold opens by hand.
const everything = document.getElementById("everything");
everything.parentElement.hidden = false;
everything.addEventListener("change", () => {
  for (const fold of document.querySelectorAll(".lanes details")) fold.open = everything.checked;
});
