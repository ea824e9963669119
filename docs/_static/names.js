/* Names for those who hear the page: the theme and the gallery leave some parts without one. */
document.addEventListener("DOMContentLoaded", () => {
    for (const toggle of document.querySelectorAll("summary:not([aria-label])")) {
        const page = toggle.closest("li")?.querySelector("a")?.textContent.trim();
        if (page && !toggle.textContent.trim()) toggle.setAttribute("aria-label", `Pages of ${page}`);
    }
    for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.internal"))
        if (!link.hasAttribute("aria-label")) link.setAttribute("aria-label", link.textContent.trim());
    for (const list of document.querySelectorAll(".citation-list[role=list]")) list.removeAttribute("role");
});
/* What scrolls sideways can be reached by keyboard. */
addEventListener("load", () => {
    for (const box of document.querySelectorAll(".bd-article table, .bd-article p:has(> img)"))
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
/* Browsers read no list of versions beside a page that is opened as a file: there is one version. */
if (location.protocol === "file:") {
    delete DOCUMENTATION_OPTIONS.theme_switcher_json_url;
    document.addEventListener("DOMContentLoaded", () => {
        for (const box of document.querySelectorAll(".version-switcher__container")) box.remove();
    });
}
