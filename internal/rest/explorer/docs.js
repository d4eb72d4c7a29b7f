// SPDX-License-Identifier: MIT

// The pages have the colours that were chosen in the explorer.

try {
  const theme = JSON.parse(localStorage.getItem("theme") ?? '""');
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing: those of the system
}
